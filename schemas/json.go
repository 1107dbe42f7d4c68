package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// CheckJSON reports whether b is exactly one JSON value that means the same to every reader: valid UTF-8, nothing behind
// it, no half of a surrogate pair, and no object with the same name twice (readers differ in which one they take). The error names the first fault.
func CheckJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := checkValue(d, 0); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the JSON ends too early")
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON value")
	}
	return checkSurrogates(b)
}

// maxDepth keeps a hostile payload from growing the stack. MySQL's JSON_VALID refuses more than 100 levels of arrays and
// objects and MariaDB's more than 31, so that no stored payload is deeper.
const maxDepth = 100

func checkValue(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if _, nested := t.(json.Delim); nested && depth >= maxDepth {
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch t {
	case json.Delim('{'):
		return checkObject(d, depth)
	case json.Delim('['):
		for d.More() {
			if err := checkValue(d, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

func checkObject(d *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok {
			return fmt.Errorf("object name %v is not a string", t)
		}
		if seen[name] {
			return fmt.Errorf("the name %q stands twice in one object", name)
		}
		seen[name] = true
		if err := checkValue(d, depth+1); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
