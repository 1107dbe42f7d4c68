package sesstandin

import (
	"github.com/oncepost/oncepost/internal/sestag"
)

// Limits of SES, from its documentation.
const (
	maxMessage    = 10 << 20 // bytes, after MIME encoding
	maxRecipients = 50       // To, Cc and Bcc together
)

func tooLong(size int) *APIError {
	return invalid("Message length is more than %d bytes long: '%d'.", maxMessage, size)
}

// check refuses what SES refuses of any send, and reduces all addresses to their bare form.
// One bad recipient refuses the whole mail.
func check(sub submission) (submission, *APIError) {
	if len(sub.recipients) == 0 {
		return sub, invalid("Missing required header 'To'.")
	}
	if len(sub.recipients) > maxRecipients {
		return sub, invalid("Recipient count exceeds %d.", maxRecipients)
	}
	bare := make([]string, len(sub.recipients))
	for i, r := range sub.recipients {
		address, refusal := checkAddress(r)
		if refusal != nil {
			return sub, refusal
		}
		bare[i] = address
	}
	source, refusal := checkAddress(sub.source)
	if refusal != nil {
		return sub, refusal
	}
	sub.source, sub.recipients = source, bare
	if len(sub.raw) > maxMessage {
		return sub, tooLong(len(sub.raw))
	}
	return sub, checkTags(sub)
}

func checkTags(sub submission) *APIError {
	seen := map[string]bool{}
	for _, t := range sub.tags {
		if !sestag.Valid(t.Name) {
			return invalid("Invalid tag name <%s>: only alphanumeric ASCII letters, '_', and '-' are allowed, 1 to %d of them.", t.Name, sestag.MaxLen)
		}
		if !sestag.Valid(t.Value) {
			return invalid("Invalid tag value <%s>: only alphanumeric ASCII letters, '_', and '-' are allowed, 1 to %d of them.", t.Value, sestag.MaxLen)
		}
		if seen[t.Name] {
			return invalid("Duplicate tag name <%s>.", t.Name)
		}
		seen[t.Name] = true
	}
	if cs := sub.configurationSet; cs != "" && (!sestag.Valid(cs) || len(cs) > 64) {
		return invalid("Invalid configuration set name <%s>: only alphanumeric ASCII letters, '_', and '-' are allowed.", cs)
	}
	return nil
}
