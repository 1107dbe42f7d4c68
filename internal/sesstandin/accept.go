package sesstandin

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/oncepost/oncepost/internal/sestag"
)

// dropped counts what the journal still holds of mails that memory has let go.
type dropped struct {
	mails int
	bytes int64
}

// accept takes a mail: it gets its ID, is counted, kept on disk, and shown, in this order.
func (s *Server) accept(sub submission, sc script) (Mail, *APIError) {
	now := s.cfg.Now()
	m, err := newMail(sub, now)
	if err != nil {
		return Mail{}, invalid("The message cannot be parsed: %v", err)
	}
	s.accepting.Lock()
	defer s.accepting.Unlock()
	if refusal := s.admit(now, float64(len(m.To)), sc); refusal != nil {
		return Mail{}, refusal
	}
	if s.journal != nil {
		if err := s.journal.append(m); err != nil {
			s.log.Error("mail not accepted", "error", err)
			return Mail{}, &APIError{
				Status: http.StatusInternalServerError, Type: "Receiver", Code: "InternalFailure",
				Message: "The stand-in could not write the mail to its folder.",
			}
		}
	}
	s.keep(m)
	if err := s.compact(); err != nil {
		s.log.Error("mail file not compacted: it grows on", "error", err) // the mail itself is kept
	}
	return m, nil
}

// admit checks the scripted limits and the configured quota.
func (s *Server) admit(now time.Time, recipients float64, sc script) *APIError {
	limits := slices.Clone(sc.limits)
	if q := s.cfg.Quota; q.Enforce {
		limits = append(limits, limit{perSecond: q.MaxSendRate, perDay: max(q.Max24HourSend, 0)})
	}
	i, refusal := s.sending.admit(now, recipients, limits)
	if refusal != nil && i < len(sc.ids) {
		s.faults.fired(sc.ids[i])
	}
	return refusal
}

// keep puts a mail into memory and notes what fell out.
func (s *Server) keep(m Mail) {
	mails, bytes := s.store.add(m)
	s.dropped.mails += mails
	s.dropped.bytes += bytes
}

// compact rewrites the journal once it holds as much that is gone as there may be that is not,
// so that it is bounded and each mail is rewritten about once.
func (s *Server) compact() error {
	if s.journal == nil || s.dropped.mails < s.cfg.MaxMails && s.dropped.bytes < s.cfg.MaxBytes {
		return nil
	}
	s.dropped = dropped{}
	return s.journal.rewrite(s.Mails())
}

// newMail gives a submission its identity. SES replaces the client's Message-ID and Date.
func newMail(sub submission, now time.Time) (Mail, error) {
	r := record{
		ID:               newID(now),
		Action:           sub.action,
		Source:           sub.source,
		To:               sub.recipients,
		ConfigurationSet: sub.configurationSet,
		ReceivedAt:       now.UTC().Round(0),
	}
	if len(sub.tags) > 0 {
		r.Tags = map[string]string{}
		for _, t := range sub.tags {
			r.Tags[t.Name] = t.Value
		}
	}
	own := fmt.Sprintf("Message-ID: <%s@email.amazonses.com>\r\nDate: %s\r\n", r.ID, now.UTC().Format(time.RFC1123Z))
	r.Raw = slices.Concat([]byte(own), sub.raw)
	return r.mail()
}

// newID looks like an ID of SES: a time in hexadecimal, a UUID, a counter.
func newID(now time.Time) string {
	return fmt.Sprintf("0100%012x-%s-000000", now.UnixMilli(), uuid.NewString())
}

func decodeTag(tags map[string]string, name string) string {
	return sestag.Decode(tags[name])
}
