package workflows

import (
	"fmt"
	"strings"
	"time"

	"github.com/oncepost/oncepost/schemas"
)

// details says in words what happened, what is at stake and what to do.
func details(open []*parked, id string) string {
	text, mails := "**Parked: nobody knows whether this has happened.**\n\n", 0
	for _, p := range open {
		which := ""
		if p.n > 0 {
			mails++
			which = fmt.Sprintf(" %d of %d", p.i, p.n)
		}
		text += fmt.Sprintf("- %s%s: %s\n", p.step, which, happened(p.unknown.Class))
	}
	if mails > 0 {
		text += "\nSending a mail again may mail the recipient twice; not sending it may mean that they never hear of it. " +
			"Look for the message ID `" + id + "` among SES's events (tag `message_id`), or ask the recipient."
	}
	if mails < len(open) {
		text += "\nWhat is no mail may happen twice if it is done again, and never if it is not. Look where it would show."
	}
	return text + " Then say what is true (sent: it has happened; resend: do it once more):\n\n" + commands(open, id) +
		"\nor send the update `resolve` from the workflow's page in the web UI. Until then nothing more is done."
}

// underWayWords are shown while mails are being sent.
const underWayWords = "Being sent. Pending activities are the mails that are not sent yet, with the attempt and the last error. While SES, the network " +
	"or the ledger is away, or sending is stopped (`oncepost sending status`), they are tried again without an end."

// waiting says what a wait is for, and how a person ends it.
func waiting(w *wait, id string) string {
	until := w.until.UTC().Format(time.RFC3339)
	what := "Waits until " + until + ", when the mail is due (`deliver_at`)."
	if w.state == schemas.StateWaiting {
		what = "The mails were sent. Waits until " + until + ": then the reminder goes to those whom they have reached, unless the answer comes first."
	}
	return what + " Not to wait, or not to send it at all:\n\n    oncepost send-now " + quote(id) + " --by NAME --why REASON\n    oncepost cancel-send " + quote(id) +
		" --by NAME --why REASON\n\nor send the update `send_now` or `cancel_send` from this page."
}

// outcome says how the sends of one step ended.
func outcome(sends []Send, cancelled *Order) string {
	sent, withdrawn := 0, 0
	for _, s := range sends {
		switch {
		case s.Withdrawn:
			withdrawn++
		case s.Error == "":
			sent++
		}
	}
	text := fmt.Sprintf("Done: %d of %d sent.", sent, len(sends))
	if withdrawn > 0 {
		text += fmt.Sprintf(" %d taken back before a worker began with them.", withdrawn)
	}
	if cancelled != nil {
		text += " Cancelled by a person: the update `cancel_send` in the history says who and why."
	}
	return text
}

// quote makes one word of a shell of an ID.
func quote(id string) string { return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'" }

// commands are the lines that resolve what is parked.
func commands(open []*parked, id string) (text string) {
	for _, p := range open {
		which := ""
		if len(open) > 1 {
			which = " --step " + p.step
			if p.n > 0 {
				which += fmt.Sprintf(" --recipient %d", p.i)
			}
		}
		text += "    oncepost resolve " + quote(id) + " " + DecisionSent + "|" + DecisionResend + which + " --by NAME --why REASON\n"
	}
	return text
}

// happened puts an error class of the ledger into words.
func happened(class string) string {
	switch class {
	case "no_answer":
		return "SES did not answer in time"
	case "cut_off":
		return "the connection broke before SES had answered"
	case "server_error":
		return "SES failed while it worked on the mail"
	case "unreadable_answer":
		return "SES's answer could not be read"
	case "unsure":
		return "it failed in a way that leaves open whether it has happened"
	case "expired":
		return "the worker ended in the middle of it"
	}
	return class
}
