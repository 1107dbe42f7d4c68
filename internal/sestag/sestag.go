// Package sestag carries a message ID through an SES message tag and back.
//
// SES allows only [A-Za-z0-9_-] in a tag value, and message IDs allow more. The
// encoding is reversible and leaves IDs that already fit as they are, so that most
// tags stay readable in SES events. It does not validate message IDs.
package sestag

import (
	"encoding/base64"
	"strings"
)

// MaxLen is the greatest length of an SES tag value, in bytes. Every message ID of up
// to 128 bytes encodes to at most 175.
const MaxLen = 256

// prefix marks an encoded value. An ID that happens to begin with it is encoded too:
// otherwise Decode could not tell the two apart.
const prefix = "b64_"

// encoding is strict, so that each tag has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Encode returns the tag value for a message ID: the ID itself where SES can take it,
// otherwise "b64_" and its unpadded base64url form.
func Encode(messageID string) string {
	if Valid(messageID) && !strings.HasPrefix(messageID, prefix) {
		return messageID
	}
	return prefix + encoding.EncodeToString([]byte(messageID))
}

// Decode inverts Encode exactly. A tag that Encode cannot have made is returned as it is.
func Decode(tag string) string {
	encoded, ok := strings.CutPrefix(tag, prefix)
	if !ok {
		return tag
	}
	id, err := encoding.DecodeString(encoded)
	if err != nil {
		return tag // somebody else's tag that happens to begin with the prefix
	}
	return string(id)
}

// Valid reports whether SES takes s as a tag name or value: 1 to 256 of [A-Za-z0-9_-].
func Valid(s string) bool {
	if s == "" || len(s) > MaxLen {
		return false
	}
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return true
}

func allowed(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
