package sesstandin

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// longDelay is longer than any client waits.
const longDelay = Duration(10 * time.Minute)

// FaultPreset is a fault with a name, so that nobody has to know the codes of SES.
type FaultPreset struct {
	Name    string
	Meaning string
	Fault   Fault
}

// Presets returns the named faults, in the order to show them.
func Presets() []FaultPreset {
	return []FaultPreset{
		{"throttle", "the sending rate is exceeded", Fault{Error: throttled("Maximum sending rate exceeded.")}},
		{"daily-quota", "the quota of the day is used up", Fault{QuotaExhausted: true}},
		{"paused", "sending is paused for the account", Fault{Error: rejected("Sending paused for this account. " +
			"For more information, please check the inbox of the email address associated with your AWS account.")}},
		{"unverified", "the sender is not verified", Fault{Error: rejected("Email address is not verified. " +
			"The following identities failed the check in region US-EAST-1: sender@example.com")}},
		{"reject", "the mail is refused for good", Fault{Error: rejected("Address blacklisted.")}},
		{"credentials", "the access key is invalid", Fault{Action: AnyAction, Error: &APIError{
			Status: http.StatusForbidden, Code: "InvalidClientTokenId",
			Message: "The security token included in the request is invalid.",
		}}},
		{"unavailable", "503, the mail is not accepted", Fault{Error: &APIError{
			Status: http.StatusServiceUnavailable, Code: "ServiceUnavailable",
			Message: "Service is unavailable.",
		}}},
		{"timeout", "no answer in time, the mail is not accepted", Fault{Delay: longDelay}},
		{"timeout-accepted", "no answer in time, yet the mail is accepted", Fault{AnswerDelay: longDelay}},
		{"lost-answer", "the mail is accepted, then the connection breaks", Fault{DropAfter: true}},
		{"garbage", "the mail is accepted, the answer is unreadable", Fault{Garbage: true}},
	}
}

// Preset returns the named fault, to inject as it is or with Match, After and Times set.
func Preset(name string) (Fault, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p.Fault, nil
		}
		names = append(names, p.Name)
	}
	return Fault{}, fmt.Errorf("no fault preset %q: use one of %s", name, strings.Join(names, ", "))
}

func rejected(message string) *APIError {
	return &APIError{Status: http.StatusBadRequest, Type: "Sender", Code: "MessageRejected", Message: message}
}
