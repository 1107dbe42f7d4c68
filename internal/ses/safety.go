package ses

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"

	"github.com/oncepost/oncepost/activities"
	"github.com/oncepost/oncepost/internal/sesraw"
)

// Safety keeps mails from people where they are not meant for them: outside production.
type Safety struct {
	// Allow are addresses, and domains (example.com, which is not its subdomains), that mails may go to. Default: all.
	Allow []string
	// RedirectTo is an address that every mail goes to instead of its recipient's. Allow, where it is given, must allow it.
	RedirectTo string
	// DryRun does everything but the request. Mails count as sent, with DryRunID in the place of SES's ID.
	DryRun bool
}

// DryRunID is what a dry run has for SES's ID of a mail.
const DryRunID = "dry-run"

// IntendedFor is the header of a redirected mail that names its recipient.
const IntendedFor = "X-Oncepost-Intended-For"

var errNotAllowed = errors.New("the recipient is not among those that ONCEPOST_MAIL_ALLOW allows: this mail does not leave")

// safety is a Safety that has been read.
type safety struct {
	addresses, domains map[string]bool // both nil: all may be sent to
	redirect           *mail.Address   // nil: none
}

func newSafety(cfg Safety) (safety, error) {
	var s safety
	if len(cfg.Allow) > 0 {
		s.addresses, s.domains = map[string]bool{}, map[string]bool{}
	}
	for i, entry := range cfg.Allow {
		if err := s.allow(strings.TrimSpace(entry)); err != nil {
			return s, fmt.Errorf("ONCEPOST_MAIL_ALLOW: entry %d of %d: %w", i+1, len(cfg.Allow), err)
		}
	}
	if cfg.RedirectTo == "" {
		return s, nil
	}
	var err error
	if s.redirect, err = sesraw.Parse("address that mails are redirected to (ONCEPOST_MAIL_REDIRECT_TO)", cfg.RedirectTo); err != nil {
		return s, err
	}
	if !s.allows(s.redirect) {
		return s, errors.New("ONCEPOST_MAIL_ALLOW does not allow the address of ONCEPOST_MAIL_REDIRECT_TO: no mail could leave")
	}
	return s, nil
}

func (s safety) allow(entry string) error {
	if !strings.Contains(entry, "@") {
		domain, err := sesraw.Domain(entry)
		s.domains[strings.ToLower(domain)] = true
		return err
	}
	a, err := sesraw.Address("", entry)
	if err == nil {
		s.addresses[canonical(a)] = true
	}
	return err
}

// canonical is the form that spellings of one mailbox share, with its domain in ASCII already.
func canonical(a *mail.Address) string { return activities.Address{Email: a.Address}.Canonical() }

func (s safety) allows(a *mail.Address) bool {
	if s.addresses == nil {
		return true
	}
	c := canonical(a)
	return s.addresses[c] || s.domains[c[strings.LastIndexByte(c, '@')+1:]]
}

// apply changes a mail's recipient, or refuses it.
func (s safety) apply(m *sesraw.Message) error {
	to := m.To[0]
	if s.redirect == nil {
		if !s.allows(to) {
			return errNotAllowed
		}
		return nil
	}
	m.To = []*mail.Address{s.redirect}
	m.Subject = "[to " + to.Address + "] " + m.Subject
	m.Headers = append(m.Headers, sesraw.Header{Name: IntendedFor, Value: to.String()})
	return nil
}
