package main

import "errors"

type mailCmd struct {
	Mails int `default:"300"`
}

// Run is filled in below.
func (c *mailCmd) Run(*bench) error { return errors.New("pending") }
