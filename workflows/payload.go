package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/oncepost/oncepost/activities"
)

// object is a JSON object read by exact names. A struct would not do: encoding/json also fills its fields from names in
// another letter case, so that {"email":"a","EMAIL":"b"} would go to b where the schema had checked a.
type object map[string]json.RawMessage

// read takes what a workflow itself needs of the payload. The activity checks all of it against the schema.
func read(payload converter.RawValue) (object, error) {
	var o object
	if err := json.Unmarshal(payload.Payload().GetData(), &o); err != nil {
		return nil, invalid("the payload is not a JSON object")
	}
	return o, nil
}

// field is the value of a name, or T's zero value where there is none.
func field[T any](o object, name string) (v T, err error) {
	raw, found := o[name]
	if !found {
		return v, nil
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, invalid(fmt.Sprintf("the payload's %s is not of the right type", name))
	}
	return v, nil
}

// address reads the fields email and name.
func address(o object) (a activities.Address, err error) {
	if a.Email, err = field[string](o, "email"); err != nil {
		return a, err
	}
	a.Name, err = field[string](o, "name")
	return a, err
}

// invalid fails a workflow for good. The text repeats no value: it is shown and logged.
func invalid(text string) error {
	return temporal.NewNonRetryableApplicationError(text, activities.TypeInvalidPayload, nil)
}
