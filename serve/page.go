package serve

import (
	"embed"
	"io/fs"
	"net/http"
)

// pageFiles are the page to chat: plain HTML with a script, which asks this server as any other client does.
//
//go:embed page
var pageFiles embed.FS

// servePage adds the page at /. It needs no key: the page asks for one.
func (s *Server) servePage() {
	files, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic("BUG: " + err.Error()) // they are in the program
	}
	h := http.FileServerFS(files)
	for _, path := range []string{"/{$}", "/page.css", "/page.js"} {
		s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:")
			w.Header().Set("Cache-Control", "no-cache")
			h.ServeHTTP(w, r)
		})
	}
}
