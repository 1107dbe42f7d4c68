package alerts

import (
	"strings"
)

// Error says what failed of an alert, and what carried it. No address and no URL is in it.
type Error struct {
	// Settings is what is wrong with the Config, Mail why SES did not accept the mail, Webhook why that failed. Nil where
	// nothing failed, or it was not needed.
	Settings, Mail, Webhook error
	// By is what carried the alert: mail, webhook, or nothing.
	By string
}

// Reached reports whether the alert has reached somebody.
func (e *Error) Reached() bool { return e.By != "" }

// Error implements error.
func (e *Error) Error() string {
	var parts []string
	for _, p := range []struct {
		what string
		err  error
	}{{"settings", e.Settings}, {"mail", e.Mail}, {"webhook", e.Webhook}} {
		if p.err != nil {
			parts = append(parts, p.what+": "+strings.ReplaceAll(p.err.Error(), "\n", "; "))
		}
	}
	end := "the alert has reached nobody; it is in the error log"
	if e.Reached() {
		end = "the " + e.By + " carried the alert"
	}
	return strings.Join(append(parts, end), "; ")
}

// orNil keeps a nil *Error from becoming an error that is not nil.
func (e *Error) orNil() error {
	if e.Reached() && e.Mail == nil && e.Settings == nil {
		return nil
	}
	return e
}
