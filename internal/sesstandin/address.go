package sesstandin

import (
	"net/mail"
	"strings"
)

const (
	maxAddress = 320
	maxLocal   = 64
	maxDomain  = 255
	maxLabel   = 63
)

// checkAddress returns the bare form of an address that SES can take, with or without a display
// name. SES has no SMTPUTF8: the local part is ASCII, the domain is Punycode.
func checkAddress(address string) (string, *APIError) {
	if !isASCII(address) {
		return "", invalid("Local address contains control or whitespace: non-ASCII characters are not supported: %q", address)
	}
	for i := range len(address) {
		if address[i] < ' ' || address[i] == 0x7f {
			return "", invalid("Local address contains control or whitespace")
		}
	}
	if !strings.Contains(address, "@") {
		return "", invalid("Missing final '@domain'")
	}
	a, err := mail.ParseAddress(address)
	if err != nil {
		return "", invalid("Illegal address: %v", err)
	}
	return a.Address, checkBare(a.Address)
}

// checkBare checks an address without a display name.
func checkBare(address string) *APIError {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return invalid("Missing final '@domain'")
	}
	local, domain := address[:at], address[at+1:]
	switch {
	case local == "":
		return invalid("User name is missing: '%s'.", address)
	case !isASCII(local) || strings.ContainsAny(local, " \t\r\n\x00"):
		return invalid("Local address contains control or whitespace")
	case len(address) > maxAddress || len(local) > maxLocal:
		return invalid("Address length is more than %d characters long: '%s'", maxAddress, address)
	case len(domain) > maxDomain || !strings.Contains(domain, "."):
		return invalid("Domain is not of the form [SubDomain.]Domain.TopLevelDomain: '%s'", domain)
	}
	for label := range strings.SplitSeq(domain, ".") {
		if refusal := checkLabel(label, domain); refusal != nil {
			return refusal
		}
	}
	return nil
}

func checkLabel(label, domain string) *APIError {
	if label == "" || len(label) > maxLabel {
		return invalid("Domain has an empty or overlong label: '%s'", domain)
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		return invalid("Domain contains illegal character")
	}
	for i := range len(label) {
		c := label[i]
		if !isLetterDigitDash(c) {
			return invalid("Domain contains illegal character")
		}
	}
	return nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func isLetterDigitDash(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-'
}
