//go:build unix && !linux

package main

import "syscall"

// childAttributes give the command a process group of its own. Where this process is killed the command goes on, without its lock.
func childAttributes(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }
