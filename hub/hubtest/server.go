// Package hubtest is a model hub on this machine, for tests: what package fetch and the hub's own tools ask of one.
package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Commit is what main stands for at first.
const Commit = "8f3f9d0c6f5b4a3e2d1c0b9a8f7e6d5c4b3a2918"

// File is a file of a repository.
type File struct {
	Path string
	Text []byte
	LFS  bool // kept elsewhere, on another host, by its sha256

	// What the hub says that is not so, if it is set.
	Hash string
	Size int64
}

// hash is the sha256 of a file in LFS, else the hash of git's blob.
func (f File) hash() string {
	if f.Hash != "" {
		return f.Hash
	}
	if f.LFS {
		sum := sha256.Sum256(f.Text)
		return hex.EncodeToString(sum[:])
	}
	return blob(f.Text)
}

// blob is git's hash of a file.
func blob(text []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(text)), text...))
	return hex.EncodeToString(sum[:])
}

func (f File) size() int64 {
	if f.Size != 0 {
		return f.Size
	}
	return int64(len(f.Text))
}

// Server is a hub with one repository.
type Server struct {
	URL   string // of the hub, where the token goes
	Store string // of the other host, where files of LFS are
	Name  string
	Token string // that the repository wants, "" for none
	Main  string // the commit that main stands for
	Gated bool   // a token must be had, and have an agreement

	// Before is asked before a request is answered, on either host; true: it has answered. Once requests have come it is
	// changed by Answer only.
	Before func(w http.ResponseWriter, r *http.Request) bool

	files []File
	mu    sync.Mutex
	asked []Asked
}

// Asked is a request that came.
type Asked struct {
	Path, Range string
	Token       string // without "Bearer "
	Store       bool   // to the other host
}

// New opens a hub with a repository, until the test is over.
func New(t testing.TB, name string, files ...File) *Server {
	s := &Server{Name: name, Main: Commit, files: files}
	open := func(h http.HandlerFunc, store bool) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			s.asked = append(s.asked, Asked{r.URL.Path, r.Header.Get("Range"),
				strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), store})
			before := s.Before
			s.mu.Unlock()
			if before == nil || !before(w, r) {
				h(w, r)
			}
		}))
		t.Cleanup(server.Close)
		t.Cleanup(server.CloseClientConnections)
		return server.URL
	}
	s.URL, s.Store = open(s.hub, false), open(s.store, true)
	return s
}

// Answer has the requests to come answered by the hub itself, though answers that Before gives may still be under way.
func (s *Server) Answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Before = nil
}

// Asked are the requests that have come.
func (s *Server) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Set gives the repository other files.
func (s *Server) Set(files ...File) { s.files = files }

// refuse answers as the hub does where it does not give a thing.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Error-Code", code)
	http.Error(w, `{"error":"`+code+`"}`, status)
}

// hub answers on the hub's own host.
func (s *Server) hub(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	rest, api := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/"+s.Name)
	if !api {
		rest = strings.TrimPrefix(rest, "/"+s.Name)
	}
	switch {
	case len(rest) == len(r.URL.EscapedPath()), s.Token != "" && !s.Gated && token != s.Token:
		refuse(w, http.StatusUnauthorized, "RepoNotFound")
		return
	case s.Gated && token == "":
		refuse(w, http.StatusUnauthorized, "GatedRepo")
		return
	case s.Gated && token != s.Token:
		refuse(w, http.StatusForbidden, "GatedRepo")
		return
	}
	parts := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	switch {
	case api && (rest == "" || parts[0] == "revision"):
		if rest != "" && !s.known(parts[1]) {
			refuse(w, http.StatusNotFound, "RevisionNotFound")
			return
		}
		s.json(w, map[string]any{"id": s.Name, "sha": s.Main, "siblings": []any{}})
	case api && parts[0] == "tree" && s.known(parts[1]):
		s.tree(w, r)
	case !api && parts[0] == "resolve" && s.known(parts[1]):
		s.resolve(w, r, strings.Join(parts[2:], "/"))
	default:
		refuse(w, http.StatusNotFound, "RevisionNotFound")
	}
}

// known reports whether a revision is that of main: a branch, a ref with slashes, or the commit itself.
func (s *Server) known(revision string) bool {
	return revision == "main" || revision == "refs%2Fpr%2F1" || revision == s.Main
}

func (s *Server) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// tree lists files, three on a page, and the folders among them.
func (s *Server) tree(w http.ResponseWriter, r *http.Request) {
	const page = 3
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	entries := []any{}
	if from == 0 {
		entries = append(entries, map[string]any{"type": "directory", "path": "folder", "oid": blob(nil), "size": 0})
	}
	for _, f := range s.files[from:min(from+page, len(s.files))] {
		e := map[string]any{"type": "file", "path": f.Path, "size": f.size(), "oid": f.hash()}
		if f.LFS {
			e["oid"] = blob([]byte(f.hash()))
			e["lfs"] = map[string]any{"oid": f.hash(), "size": f.size(), "pointerSize": 134}
		}
		entries = append(entries, e)
	}
	if from+page < len(s.files) {
		query := r.URL.Query()
		query.Set("cursor", strconv.Itoa(from+page))
		w.Header().Set("Link", fmt.Sprintf("<%s%s?%s>; rel=\"next\"", s.URL, r.URL.EscapedPath(), query.Encode()))
	}
	s.json(w, entries)
}

// resolve gives a file, or for those in LFS the address on the other host.
func (s *Server) resolve(w http.ResponseWriter, r *http.Request, escaped string) {
	path, err := url.PathUnescape(escaped)
	i := slices.IndexFunc(s.files, func(f File) bool { return f.Path == path })
	if err != nil || i < 0 {
		refuse(w, http.StatusNotFound, "EntryNotFound")
		return
	}
	f := s.files[i]
	w.Header().Set("X-Repo-Commit", s.Main)
	if !f.LFS {
		w.Header().Set("ETag", `"`+f.hash()+`"`)
		http.ServeContent(w, r, path, time.Time{}, bytes.NewReader(f.Text))
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+f.hash()+`"`)
	w.Header().Set("X-Linked-Size", strconv.FormatInt(f.size(), 10))
	http.Redirect(w, r, s.Store+"/"+f.hash()+"?signature=secret", http.StatusFound)
}

// store answers on the other host, which refuses whoever brings a token, as signed addresses do.
func (s *Server) store(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" || r.URL.Query().Get("signature") != "secret" {
		http.Error(w, "only one way to sign", http.StatusBadRequest)
		return
	}
	for _, f := range s.files {
		if f.LFS && f.hash() == strings.TrimPrefix(r.URL.Path, "/") {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Text))
			return
		}
	}
	http.NotFound(w, r)
}
