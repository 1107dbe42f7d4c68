package sesstandin

import "net/http"

func (s *Server) routes() (http.Handler, error) {
	p, err := newPages(s)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{$}", s.serveAPI)

	mux.HandleFunc("GET /{$}", p.inbox)
	mux.HandleFunc("GET /live", p.live)
	mux.HandleFunc("POST /faults", p.changeFaults)
	mux.HandleFunc("GET /mail/{id}", p.mail)
	mux.HandleFunc("GET /mail/{id}/html", p.mailHTML)
	mux.HandleFunc("GET /mail/{id}/raw", p.mailRaw)

	mux.HandleFunc("GET /_standin/health", func(w http.ResponseWriter, _ *http.Request) {
		s.write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	})
	mux.HandleFunc("GET /_standin/mails", s.getMails)
	mux.HandleFunc("DELETE /_standin/mails", s.deleteMails)
	mux.HandleFunc("GET /_standin/requests", s.getRequests)
	mux.HandleFunc("GET /_standin/faults", s.getFaults)
	mux.HandleFunc("POST /_standin/faults", s.postFault)
	mux.HandleFunc("DELETE /_standin/faults", s.deleteFaults)

	// Some other page in the developer's browser must not script faults or clear the inbox.
	return http.NewCrossOriginProtection().Handler(mux), nil
}
