package activities

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/oncepost/oncepost/schemas"
)

// Payloads knows the JSON Schema of every event type. It is safe for concurrent use.
type Payloads struct {
	schemas map[string]*jsonschema.Schema
}

// BuiltinPayloads compiles the schemas of the shipped event types, and those in more (`<event type>.json`), which win.
func BuiltinPayloads(more ...fs.FS) (*Payloads, error) {
	p := &Payloads{schemas: map[string]*jsonschema.Schema{}}
	for i, fsys := range append([]fs.FS{schemas.Events()}, more...) {
		names, err := fs.Glob(fsys, "*.json")
		if err != nil {
			return nil, fmt.Errorf("schemas: %w", err)
		}
		for _, name := range names {
			if p.schemas[strings.TrimSuffix(name, ".json")], err = compile(fsys, name, i); err != nil {
				return nil, fmt.Errorf("schema %s: %w", name, err)
			}
		}
	}
	return p, nil
}

func compile(fsys fs.FS, name string, i int) (*jsonschema.Schema, error) {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	url := fmt.Sprintf("mem://%d/%s", i, name)
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// Types returns the event types that have a schema, sorted.
func (p *Payloads) Types() []string {
	var names []string
	for name := range p.schemas {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Decode checks raw against the schema of eventType and returns its fields. Names are matched exactly, a name that stands
// twice is refused, and numbers keep their digits (json.Number). The error says which fields are wrong, and repeats no
// value: it is shown and logged.
func (p *Payloads) Decode(eventType string, raw []byte) (map[string]any, error) {
	schema := p.schemas[eventType]
	if schema == nil {
		return nil, fmt.Errorf("there is no JSON Schema for event type %s", eventType)
	}
	if err := schemas.CheckJSON(raw); err != nil {
		return nil, fmt.Errorf("the payload is not unambiguous JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.New("the payload is not valid JSON")
	}
	if err := schema.Validate(v); err != nil {
		return nil, faults(eventType, err)
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the payload is not a JSON object")
	}
	return fields, nil
}

// faults lists where a payload departs from its schema, without the values that stand there.
func faults(eventType string, err error) error {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return fmt.Errorf("the payload cannot be checked against the schema of %s", eventType)
	}
	var found []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			walk(c)
		}
		if len(e.Causes) == 0 {
			found = append(found, fault(e))
		}
	}
	walk(v)
	return fmt.Errorf("the payload does not fit the schema of %s: %s", eventType, strings.Join(found, "; "))
}
