package sesstandin

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oncepost/oncepost/internal/sestag"
)

// The actions that the stand-in knows.
const (
	actionSendEmail    = "SendEmail"
	actionSendRawEmail = "SendRawEmail"
	actionGetSendQuota = "GetSendQuota"

	actionGetSendingEnabled = "GetAccountSendingEnabled"
	actionGetIdentities     = "GetIdentityVerificationAttributes"
	actionDescribeSet       = "DescribeConfigurationSet"
)

var actions = []string{actionSendEmail, actionSendRawEmail, actionGetSendQuota, actionGetSendingEnabled, actionGetIdentities, actionDescribeSet}

const apiVersion = "2010-12-01"

// serveAPI is the AWS Query protocol: every action is a POST to /.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	form, refusal := readForm(w, r)
	if refusal != nil {
		s.countRequest("unknown")
		s.writeError(w, refusal)
		return
	}
	action := form.Get("Action")
	switch action {
	case actionSendEmail, actionSendRawEmail:
		s.countRequest(action)
		s.serveSend(w, r, action, form)
	case actionGetSendQuota, actionGetSendingEnabled, actionGetIdentities, actionDescribeSet:
		s.countRequest(action)
		s.serveAccount(w, r, action, form)
	default:
		s.countRequest("unknown")
		s.writeError(w, &APIError{
			Status: http.StatusBadRequest, Type: "Sender", Code: "InvalidAction",
			Message: fmt.Sprintf("Could not find operation %s for version %s (the stand-in knows %s)",
				action, apiVersion, strings.Join(actions, ", ")),
		})
	}
}

func (s *Server) serveSend(w http.ResponseWriter, r *http.Request, action string, form url.Values) {
	sub, refusal := parseSend(action, form)
	sc := s.faults.pick(action, sestag.Decode(sub.tag(tagMessageID)), sub.recipients)
	if !s.before(w, r, action, sc) {
		return
	}
	if refusal == nil {
		sub, refusal = check(sub)
	}
	var m Mail
	if refusal == nil {
		m, refusal = s.accept(sub, sc)
	}
	s.after(r, sc.fault)
	if refusal != nil {
		s.log.Info("mail refused", "action", action, "code", refusal.Code) // the message can quote an address
		s.writeError(w, refusal)
		return
	}
	if sc.fault.Garbage {
		s.write(w, http.StatusOK, "text/xml", []byte(garbageBody))
		return
	}
	result := sendResult{MessageID: m.ID}
	result.XMLName.Local = action + "Result"
	s.writeResult(w, action, result)
}

// before plays the faults that come before the decision. It returns false when the request has
// been answered.
func (s *Server) before(w http.ResponseWriter, r *http.Request, action string, sc script) bool {
	f := sc.fault
	if sc.id != 0 {
		s.log.Info("fault fires", "fault", sc.id, "action", action)
	}
	s.pause(r, f.Delay)
	if f.DropBefore {
		panic(http.ErrAbortHandler)
	}
	if f.Error != nil {
		s.writeError(w, f.Error)
		return false
	}
	return true
}

// after plays the faults that come between the decision and the answer.
func (s *Server) after(r *http.Request, f Fault) {
	s.pause(r, f.AnswerDelay)
	if f.DropAfter {
		panic(http.ErrAbortHandler)
	}
}

// pause waits; when the client leaves or the stand-in stops meanwhile, the request ends there,
// without an answer.
func (s *Server) pause(r *http.Request, d Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(time.Duration(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-r.Context().Done():
	case <-s.closing:
	}
	panic(http.ErrAbortHandler) // how net/http closes a connection without an answer
}

// quota is what GetSendQuota says: the configured figures, or those of a fault that enforces others.
func (s *Server) quota() quotaResult {
	q := quotaResult{
		Max24HourSend:   s.cfg.Quota.Max24HourSend,
		MaxSendRate:     s.cfg.Quota.MaxSendRate,
		SentLast24Hours: s.sending.sentLastDay(s.cfg.Now()),
	}
	q.XMLName.Local = actionGetSendQuota + "Result"
	for _, f := range s.faults.active() {
		if f.Fault.MaxPerSecond > 0 {
			q.MaxSendRate = f.Fault.MaxPerSecond
		}
		if f.Fault.MaxPerDay > 0 {
			q.Max24HourSend = f.Fault.MaxPerDay
		}
		if f.Fault.QuotaExhausted {
			if q.Max24HourSend < 0 {
				q.Max24HourSend = sandboxQuota
			}
			q.SentLast24Hours = max(q.Max24HourSend, q.SentLast24Hours)
		}
	}
	return q
}

// sandboxQuota is the daily quota of a new account: what a used-up quota is reported as when
// none is configured.
const sandboxQuota = 200
