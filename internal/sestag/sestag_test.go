package sestag_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncepost/oncepost/internal/sestag"
)

func TestEncode(t *testing.T) {
	for _, tc := range []struct{ name, id, want string }{
		{"uuid stays readable", "0190c1f2-7d3e-7a10-8f4e-1a2b3c4d5e6f", "0190c1f2-7d3e-7a10-8f4e-1a2b3c4d5e6f"},
		{"colon is encoded", "a:b", "b64_YTpi"},
		{"own prefix is encoded", "b64_YTpi", "b64_YjY0X1lUcGk"},
		{"slash and plus never appear", "~~~???", "b64_fn5-Pz8_"},
		{"empty", "", "b64_"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sestag.Encode(tc.id); got != tc.want {
				t.Errorf("Encode(%q) = %q, want %q", tc.id, got, tc.want)
			}
			if got := sestag.Decode(tc.want); got != tc.id {
				t.Errorf("Decode(%q) = %q, want %q", tc.want, got, tc.id)
			}
		})
	}
}

func TestDecodeLeavesForeignTags(t *testing.T) {
	for _, tag := range []string{"b64_%%%", "b64_YTpj=", "plain", "b64_YTpjZ"} {
		if got := sestag.Decode(tag); got != tag {
			t.Errorf("Decode(%q) = %q, want it unchanged", tag, got)
		}
	}
}

// Any message ID comes back exactly, as a tag that SES takes, and no two IDs share a tag.
func TestRoundTrip(t *testing.T) {
	printable := rapid.Custom(func(t *rapid.T) string {
		s := string(rapid.SliceOfN(rapid.ByteRange(0x21, 0x7e), 1, 128).Draw(t, "id"))
		if rapid.Bool().Draw(t, "prefixed") && len(s) <= 124 {
			s = "b64_" + s
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := printable.Draw(t, "a"), printable.Draw(t, "b")
		tag := sestag.Encode(a)
		if !sestag.Valid(tag) {
			t.Fatalf("Encode(%q) = %q is no SES tag", a, tag)
		}
		if got := sestag.Decode(tag); got != a {
			t.Fatalf("Decode(Encode(%q)) = %q", a, got)
		}
		if a != b && tag == sestag.Encode(b) {
			t.Fatalf("%q and %q share the tag %q", a, b, tag)
		}
	})
}

func TestValid(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "a b": false, "é": false, "a.b": false, "A-z_0": true,
		strings.Repeat("a", 256): true, strings.Repeat("a", 257): false,
	} {
		if got := sestag.Valid(s); got != want {
			t.Errorf("Valid(%q) = %v, want %v", s, got, want)
		}
	}
}

func ExampleEncode() {
	tag := sestag.Encode("payment_failed:sub_9:2026-11")
	fmt.Println(tag)
	fmt.Println(sestag.Decode(tag))
	// Output:
	// b64_cGF5bWVudF9mYWlsZWQ6c3ViXzk6MjAyNi0xMQ
	// payment_failed:sub_9:2026-11
}
