package sesstandin

import (
	"encoding/json"
	"fmt"
	"io"
)

// faultRequest is a fault as it is asked for over HTTP.
type faultRequest struct {
	Preset string `json:"preset"`
	Fault
}

// decodeFault reads one fault. Unknown fields are refused: a misspelt "times" would otherwise
// make a fault that never ends.
func decodeFault(r io.Reader) (Fault, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var req faultRequest
	if err := dec.Decode(&req); err != nil {
		return Fault{}, fmt.Errorf("fault: %w", err)
	}
	if req.Preset == "" {
		return req.Fault, nil
	}
	f, err := Preset(req.Preset)
	if err != nil {
		return Fault{}, err
	}
	if req.hasEffect() {
		return Fault{}, fmt.Errorf("fault: preset %q brings its own effect", req.Preset)
	}
	if req.Action != "" {
		f.Action = req.Action
	}
	f.Match, f.After, f.Times = req.Match, req.After, req.Times
	return f, nil
}
