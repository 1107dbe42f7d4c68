package sesstandin

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
)

// Server is a stand-in for SES. All its methods may be called at the same time.
type Server struct {
	cfg     Config
	log     *slog.Logger
	store   *store
	faults  *faults
	sending *sending
	journal *journal // nil: memory only
	handler http.Handler

	// accepting makes "count, keep on disk, show" one step, and keeps the order of mails the
	// same in all three.
	accepting sync.Mutex
	dropped   dropped

	requestsMu sync.Mutex
	requests   map[string]int

	closing   chan struct{} // closed by Close: ends delays and every Serve
	closeOnce sync.Once
	closeErr  error
	serving   sync.WaitGroup
	servingMu sync.Mutex // orders Serve's Add before Close's Wait
}

// New makes a stand-in, and reads the mails of an earlier one back from Config.Dir.
// It returns a *ConfigError for a Config that makes no sense, a folder that cannot be used included.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:      cfg,
		log:      cfg.Logger,
		store:    newStore(cfg.MaxMails, cfg.MaxBytes),
		faults:   &faults{},
		sending:  newSending(),
		requests: map[string]int{},
		closing:  make(chan struct{}),
	}
	handler, err := s.routes()
	if err != nil {
		return nil, err
	}
	s.handler = handler
	if cfg.Dir != "" {
		if err := s.restore(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) restore() error {
	now := s.cfg.Now()
	j, torn, err := openJournal(s.cfg.Dir, func(m Mail) {
		s.keep(m)
		if now.Sub(m.ReceivedAt) < day {
			s.sending.restore(m.ReceivedAt, float64(len(m.To)))
		}
	})
	if err != nil {
		return &ConfigError{"Dir", err}
	}
	if torn > 0 {
		s.log.Warn("the mail file ended in a torn line, left by a crash: cut off", "bytes", torn)
	}
	s.journal = j
	return s.compact()
}

// Handler returns the API, the control interface and the inbox page, to serve with a server of
// one's own. [Server.Serve] does without.
func (s *Server) Handler() http.Handler { return s.handler }

// Mails returns what has been accepted and not dropped or cleared, oldest first.
func (s *Server) Mails() []Mail {
	mails, _ := s.store.all() // the channel of the next change
	return mails
}

// Wait returns the mails as soon as enough holds of them; it is asked at once and after every
// change. When ctx ends first, it returns its error and the mails of that moment.
func (s *Server) Wait(ctx context.Context, enough func([]Mail) bool) ([]Mail, error) {
	return s.store.wait(ctx, enough)
}

// ClearMails forgets all mails, those on disk too. The sending quota keeps counting them.
func (s *Server) ClearMails() error {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	s.store.clear()
	s.dropped = dropped{}
	if s.journal == nil {
		return nil
	}
	return s.journal.rewrite(nil)
}

// Inject adds a fault behind those already there and returns its ID.
func (s *Server) Inject(f Fault) (int, error) { return s.faults.inject(f) }

// ClearFaults ends all faults. Delays that have begun go on.
func (s *Server) ClearFaults() { s.faults.clear() }

// Faults returns the faults that are not used up.
func (s *Server) Faults() []FaultStatus { return s.faults.active() }

// Requests returns how many requests came per action, refused and failed ones included.
// Actions that the stand-in does not know are counted as "unknown".
func (s *Server) Requests() map[string]int {
	s.requestsMu.Lock()
	defer s.requestsMu.Unlock()
	return maps.Clone(s.requests)
}

func (s *Server) countRequest(action string) {
	s.requestsMu.Lock()
	defer s.requestsMu.Unlock()
	s.requests[action]++
}
