package githubtest

import "net/http"

func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
