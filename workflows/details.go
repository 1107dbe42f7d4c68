package workflows

import (
	"fmt"
	"strings"
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

// commands are the lines that resolve what is parked.
func commands(open []*parked, id string) (text string) {
	quoted := "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
	for _, p := range open {
		which := ""
		if len(open) > 1 {
			which = " --step " + p.step
			if p.n > 0 {
				which += fmt.Sprintf(" --recipient %d", p.i)
			}
		}
		text += "    oncepost resolve " + quoted + " " + DecisionSent + "|" + DecisionResend + which + " --by NAME --why REASON\n"
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
