package schemas

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
)

// checkSurrogates refuses a \u escape that is half a character. Go would read U+FFFD in its place and other languages
// something else; the JSON_VALID of both servers refuses it. b is valid JSON otherwise.
func checkSurrogates(b []byte) error {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return nil
		}
		b = b[i:]
		r, ok := escape(b)
		if !ok {
			b = b[2:] // \" \\ \n and the like
			continue
		}
		b = b[len(`\u0000`):]
		if !utf16.IsSurrogate(r) {
			continue
		}
		low, _ := escape(b)                       // where there is none it is no half of a pair
		if utf16.DecodeRune(r, low) == '\ufffd' { // not a pair
			return errors.New(`a \u escape is half of a surrogate pair`)
		}
		b = b[len(`\u0000`):]
	}
}

// escape reads the \uXXXX that b begins with.
func escape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
