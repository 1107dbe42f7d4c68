// Package sesraw is what all senders through SES share: addresses that SES takes, a mail as SendRawEmail wants it, and the
// configuration of AWS's SDK. It sends nothing: what a refusal means is its user's to know.
package sesraw

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Limits of SES, which are those of RFC 5321.
const (
	maxLocal  = 64
	maxDomain = 255
	maxLabel  = 63
)

// Address makes an address that SES takes, and whose name arrives as it is. SES has no SMTPUTF8: the local part must be
// ASCII, and a domain in another script becomes Punycode. An error says what is wrong and repeats nothing of the address.
func Address(name, email string) (*mail.Address, error) {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return nil, errors.New("the display name has a line break, a tab or another control character")
	}
	at := strings.LastIndexByte(email, '@')
	if at < 1 {
		return nil, errors.New("the address has no @ or nothing in front of it")
	}
	local := email[:at]
	if len(local) > maxLocal {
		return nil, errors.New("the part in front of the @ is longer than 64 characters")
	}
	if strings.ContainsFunc(local, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the part in front of the @ has a character that is not printable ASCII: SES cannot send to it")
	}
	host, err := Domain(email[at+1:])
	if err != nil {
		return nil, err
	}
	a := &mail.Address{Name: name, Address: local + "@" + host}
	if bare, err := mail.ParseAddress(a.Address); err != nil || bare.Name != "" || bare.Address != a.Address {
		return nil, errors.New("the part in front of the @ has a character that an address cannot have")
	}
	if back, err := mail.ParseAddress(a.String()); err != nil || *back != *a {
		return nil, errors.New("the display name cannot be written into a header")
	}
	return a, nil
}

// Parse reads an address of the configuration; what says whose it is.
func Parse(what, s string) (*mail.Address, error) {
	a, err := mail.ParseAddress(s)
	if err != nil {
		return nil, fmt.Errorf("the %s is not an address like mail@example.com or Example <mail@example.com>", what)
	}
	if a, err = Address(a.Name, a.Address); err != nil {
		return nil, fmt.Errorf("the %s is not one that SES takes: %w", what, err)
	}
	return a, nil
}

// Domain returns a domain in its ASCII form.
func Domain(d string) (string, error) {
	if strings.ContainsFunc(d, func(r rune) bool { return r >= 0x80 }) {
		// Not for plain names: the profile refuses r3---sn.example.com, which exists.
		ascii, err := idna.Lookup.ToASCII(d)
		if err != nil {
			return "", errors.New("the domain is not a valid internationalised name")
		}
		d = ascii
	}
	if len(d) > maxDomain || !strings.Contains(d, ".") {
		return "", errors.New("the domain is not a full name like example.com")
	}
	for label := range strings.SplitSeq(d, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(r rune) bool { return r != '-' && !asciiLetterOrDigit(r) }) {
			return "", errors.New("the domain is not a valid name")
		}
	}
	return d, nil
}

func asciiLetterOrDigit(r rune) bool {
	return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
}

// maxLine is where a header line is folded, where it can be.
const maxLine = 76

// fold breaks a header's value into lines, at single spaces only: what reads it makes one space of a break and all spaces
// around it.
func fold(header, value string) string {
	var b strings.Builder
	line := len(header) + len(": ")
	for i, word := range words(value) {
		switch {
		case i == 0:
		case line+1+len(word) > maxLine:
			b.WriteString("\r\n ")
			line = 1
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += len(word)
	}
	return b.String()
}

// words splits at single spaces.
func words(s string) []string {
	var all []string
	begin := 0
	for i := 1; i < len(s)-1; i++ {
		if s[i] == ' ' && s[i-1] != ' ' && s[i+1] != ' ' {
			all = append(all, s[begin:i])
			begin = i + 1
		}
	}
	return append(all, s[begin:])
}
