package schemas

import (
	"encoding/json"
	"strings"
	"testing"
)

func nested(levels int, inside string) string {
	return strings.Repeat("[", levels) + inside + strings.Repeat("]", levels)
}

func TestCheckJSON(t *testing.T) { // scenario 16
	for _, c := range []struct {
		name, json string
		says       string // "" = good
	}{
		{"an object", `{"a":1,"A":3,"b":{"a":[1,{"a":2}]}}`, ""},
		{"a number", `9007199254740993`, ""},
		{"null with space", " null\n", ""},
		{"the same name in two objects", `[{"a":1},{"a":1}]`, ""},
		{"empty containers", `{"a":{},"b":[]}`, ""},
		{"100 levels", nested(100, ""), ""},
		{"100 levels and a value", nested(100, "1"), ""},
		{"101 levels", nested(101, ""), "nested deeper than 100"},
		{"a million levels", nested(1_000_000, ""), "nested deeper"},
		{"a name twice", `{"a":1,"a":2}`, `"a" stands twice`},
		{"a name twice inside", `{"x":[{"a":1,"b":2,"a":2}]}`, `"a" stands twice`},
		{"a name twice, once escaped", `{"a":1,"\u0061":2}`, `"a" stands twice`},
		{"nothing", ``, "too early"},
		{"space", "  \n", "too early"},
		{"cut in an object", `{"a":1`, "too early"},
		{"cut in a string", `{"a":"b`, "too early"},
		{"cut in an array", `[1,`, "too early"},
		{"two values", `{} {}`, "behind the JSON value"},
		{"a tail", `{}x`, "behind the JSON value"},
		{"a comma too many", `{"a":1,}`, "invalid character"},
		{"single quotes", `{'a':1}`, "invalid character"},
		{"no quotes", `{a:1}`, "invalid character"},
		{"a line break in a string", "\"a\nb\"", "invalid character"},
		{"NaN", `NaN`, "invalid character"},
		{"a leading zero", `01`, "behind the JSON value"},
		{"a surrogate pair", `"\ud83d\ude00\\ud800"`, ""},
		{"an escape of another kind", `"\\\n\u0041\""`, ""},
		{"half a surrogate pair", `"\ud83d"`, "half of a surrogate pair"},
		{"the other half", `"\uDE00"`, "half of a surrogate pair"},
		{"halves in the wrong order", `"\ude00\ud83d"`, "half of a surrogate pair"},
		{"a half and a character", `"\ud83d\u0041"`, "half of a surrogate pair"},
		{"a half in a name", `{"\\\ud83d":1}`, "half of a surrogate pair"},
		{"bad UTF-8", "\"\xff\"", "UTF-8"},
		{"an encoded surrogate", "\"\xed\xa0\x80\"", "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckJSON([]byte(c.json))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}

// What CheckJSON accepts is JSON for the standard library too.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,null,true,"x"]}`, `01`, `{"a":1,}`, `[1,]`, `"\ud800"`, `{} {}`, `-`, "\"\x00\"", `{"a" 1}`, `[1 2]`, `{"a":1 "b":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if CheckJSON(b) == nil && !json.Valid(b) {
			t.Errorf("%q is accepted and is not JSON", b)
		}
	})
}
