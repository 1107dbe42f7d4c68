package workflows

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/schemas"
	"github.com/oncepost/oncepost/templates"
)

// locales are those that every shipped type has mails in.
var locales = []string{"en", "ko"}

// A shipped type has all its parts, and no part is without its type.
func TestBuiltinTypesAreComplete(t *testing.T) {
	r := Builtin()
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	mails, err := templates.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	payloads, err := activities.BuiltinPayloads()
	if err != nil {
		t.Fatal(err)
	}
	var names, mailing []string
	for _, typ := range r.Types() {
		names = append(names, typ.Name)
		if typ.NoMail {
			continue
		}
		mailing = append(mailing, typ.Name)
		for _, locale := range locales {
			if !mails.Has(typ.Name, locale) {
				t.Errorf("templates/%s/%s is missing", typ.Name, locale)
			}
		}
	}
	slices.Sort(names)
	if schemas := payloads.Types(); !slices.Equal(schemas, names) {
		t.Errorf("schemas/events has %v, the registry %v", schemas, names)
	}
	withMails := mails.Types()
	slices.Sort(withMails)
	slices.Sort(mailing)
	if !slices.Equal(withMails, mailing) {
		t.Errorf("templates has %v, the registry %v", withMails, mailing)
	}
}

// The workflows are top-level functions, which the checker of determinism looks at, with the arguments that the relay gives.
func TestBuiltinWorkflowsAreNamedFunctions(t *testing.T) {
	in := []reflect.Type{reflect.TypeFor[workflow.Context](), reflect.TypeFor[converter.RawValue](), reflect.TypeFor[schemas.Envelope]()}
	for _, typ := range Builtin().Types() {
		f := reflect.TypeOf(typ.Workflow)
		if f.Kind() != reflect.Func || f.NumIn() != len(in) {
			t.Errorf("%s: %s", typ.Name, f)
			continue
		}
		for i, want := range in {
			if f.In(i) != want {
				t.Errorf("%s: argument %d is %s, want %s", typ.Name, i, f.In(i), want)
			}
		}
		name := runtime.FuncForPC(reflect.ValueOf(typ.Workflow).Pointer()).Name()
		if short := name[strings.LastIndex(name, "/")+1:]; strings.Count(short, ".") != 1 {
			t.Errorf("%s: %s is not a top-level function", typ.Name, name)
		}
	}
}

func TestRegistryWith(t *testing.T) {
	base := Builtin()
	a := base.With(Type{Name: "a", Workflow: SendMail})
	b := base.With(Type{Name: "b", Workflow: SendMail})
	for r, want := range map[*Registry]string{&base: "card_registered", &a: "a", &b: "b"} {
		types := r.Types()
		if last := types[len(types)-1].Name; last != want {
			t.Errorf("the last type is %s, want %s: registries share their list", last, want)
		}
	}
	types := base.Types()
	types[0].Name = "changed"
	if base.Types()[0].Name == "changed" {
		t.Error("a caller can change the registry's list")
	}
	if err := (Registry{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestRegistryRefuses(t *testing.T) {
	for name, typ := range map[string]Type{
		"an empty name": {Name: "", Workflow: SendMail}, "a colon": {Name: "a:b", Workflow: SendMail}, "a line break": {Name: "a\n", Workflow: SendMail},
		"65 characters": {Name: strings.Repeat("a", 65), Workflow: SendMail}, "a name that is taken": {Name: "welcome", Workflow: SendMail},
		"no workflow": {Name: "a"},
	} {
		if err := Builtin().With(typ).Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := Builtin().With(Type{Name: strings.Repeat("a", 64), Workflow: SendMail}).Validate(); err != nil {
		t.Error(err)
	}
}
