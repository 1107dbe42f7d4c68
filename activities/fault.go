package activities

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// fault says in words what is wrong at one place of a payload.
func fault(e *jsonschema.ValidationError) string {
	place := "/" + strings.Join(e.InstanceLocation, "/")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return fmt.Sprintf("%s lacks %s", place, strings.Join(k.Missing, ", "))
	case *kind.Type:
		return fmt.Sprintf("%s is %s, must be %s", place, k.Got, strings.Join(k.Want, " or "))
	case *kind.Pattern:
		return fmt.Sprintf("%s does not match %s", place, k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("%s is shorter than %d", place, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("%s is longer than %d", place, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("%s has fewer than %d items", place, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("%s has more than %d items", place, k.Want)
	}
	return fmt.Sprintf("%s breaks the rule %s", place, strings.Join(e.ErrorKind.KeywordPath(), "/"))
}
