package sesstandin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// maxControlBody bounds the JSON of a fault.
const maxControlBody = 64 << 10

// getMails answers the mails as JSON, oldest first. ?message_id= selects; ?wait=10s waits that
// long for at least ?at_least=1 of them, and then answers what there is.
func (s *Server) getMails(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	selected := func(mails []Mail) []Mail {
		if !q.Has("message_id") {
			return mails
		}
		return slices.DeleteFunc(slices.Clone(mails), func(m Mail) bool { return m.MessageID != q.Get("message_id") })
	}
	wait, atLeast, err := waitParams(q.Get("wait"), q.Get("at_least"))
	if err != nil {
		s.writeControlError(w, http.StatusBadRequest, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	mails, _ := s.Wait(ctx, func(mails []Mail) bool { return len(selected(mails)) >= atLeast }) // its error says only that the wait is over
	mails = selected(mails)
	if mails == nil {
		mails = []Mail{}
	}
	s.writeJSON(w, http.StatusOK, mails)
}

func waitParams(wait, atLeast string) (time.Duration, int, error) {
	if wait == "" {
		return 0, 0, nil
	}
	d, err := time.ParseDuration(wait)
	if err != nil {
		return 0, 0, fmt.Errorf("wait: %w", err)
	}
	if atLeast == "" {
		return d, 1, nil
	}
	n, err := strconv.Atoi(atLeast)
	if err != nil {
		return 0, 0, fmt.Errorf("at_least: %w", err)
	}
	return d, n, nil
}

func (s *Server) deleteMails(w http.ResponseWriter, _ *http.Request) {
	if err := s.ClearMails(); err != nil {
		s.writeControlError(w, http.StatusInternalServerError, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) getRequests(w http.ResponseWriter, _ *http.Request) {
	s.writeJSON(w, http.StatusOK, s.Requests())
}

func (s *Server) getFaults(w http.ResponseWriter, _ *http.Request) {
	s.writeJSON(w, http.StatusOK, s.Faults())
}

func (s *Server) deleteFaults(w http.ResponseWriter, _ *http.Request) {
	s.ClearFaults()
	w.WriteHeader(http.StatusNoContent)
}

// postFault injects a fault: a Fault as JSON, or {"preset": NAME} with match, after and times.
func (s *Server) postFault(w http.ResponseWriter, r *http.Request) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		s.writeControlError(w, http.StatusUnsupportedMediaType, errors.New("send the fault as application/json"))
		return
	}
	fault, err := decodeFault(http.MaxBytesReader(w, r.Body, maxControlBody))
	if err != nil {
		s.writeControlError(w, http.StatusBadRequest, err)
		return
	}
	id, err := s.Inject(fault)
	if err != nil {
		s.writeControlError(w, http.StatusBadRequest, err)
		return
	}
	s.writeJSON(w, http.StatusCreated, map[string]int{"id": id})
}

func (s *Server) writeControlError(w http.ResponseWriter, status int, err error) {
	s.writeJSON(w, status, map[string]string{"error": err.Error()})
}

func (s *Server) writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// Only a type of ours that JSON cannot express can get here.
		s.log.Error("answer is not JSON", "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	s.write(w, status, "application/json", append(body, '\n'))
}
