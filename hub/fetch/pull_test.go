package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mlxlua/mlxlua/hub"
	"github.com/mlxlua/mlxlua/hub/hubtest"
	"github.com/stretchr/testify/require"
)

// big is the file that most tests damage, and its hash.
const (
	big     = "model-00001-of-00002.safetensors"
	bigHash = "88dc8e39ed62dc38d667227ea7cde69fb4b7fe1eb4a5c3f8090b830f862fd0d0"
)

// trial is a pull that tests may disturb: it waits for milliseconds where a real one waits for seconds.
type trial struct {
	*pull
	notes strings.Builder
}

func try(t *testing.T, r Request) *trial {
	t.Helper()
	out := &trial{}
	r.Note = func(text string) { fmt.Fprintln(&out.notes, text) }
	p, err := newPull(r)
	require.NoError(t, err)
	p.client.pace = pace{tries: 3, first: time.Millisecond, longest: 2 * time.Second, stall: 10 * time.Second}
	out.pull = p
	return out
}

// whole requires that the cache is what huggingface_hub makes, apart from the second branch of TestPeer.
func whole(t *testing.T, cache string) {
	t.Helper()
	golden, err := os.ReadFile("testdata/cache.txt")
	require.NoError(t, err)
	var want strings.Builder
	for line := range strings.Lines(string(golden)) {
		if !strings.Contains(line, "/refs/refs") {
			want.WriteString(line)
		}
	}
	require.Equal(t, want.String(), contents(t, cache, 0))
}

// nothing requires that a reader of the cache sees no model.
func nothing(t *testing.T, cache string) {
	t.Helper()
	for _, place := range []string{"snapshots", "refs"} {
		require.NoDirExists(t, filepath.Join(cache, "models--org--model", place))
	}
	_, err := hub.Cache{Dir: cache}.Find("org/model")
	require.ErrorContains(t, err, "mlxlua lm pull org/model")
}

// part is what has come of the big file.
func part(t *testing.T, cache string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(cache, "models--org--model", "blobs", bigHash+".incomplete"))
	require.NoError(t, err)
	return info.Size()
}

// ranges are those in which the big file was asked for at the other host.
func ranges(s *hubtest.Server) []string {
	var out []string
	for _, a := range s.Asked() {
		if a.Store && a.Path == "/"+bigHash {
			out = append(out, a.Range)
		}
	}
	return out
}

// cut answers with the first bytes of what a handler answers, and ends the connection.
func cut(w http.ResponseWriter, r *http.Request, n int) {
	from := 0
	fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
	text := bytesOf(700_000, 1)[from:]
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if from > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/700000", from, 700_000-1))
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write(text[:min(n, len(text))])
	w.(http.Flusher).Flush()
	if n < len(text) {
		panic(http.ErrAbortHandler)
	}
}

// onBig has a function answer for the big file at the other host.
func onBig(s *hubtest.Server, f func(w http.ResponseWriter, r *http.Request) bool) {
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		return r.URL.Path == "/"+bigHash && f(w, r)
	}
}

// Of a repository only what a model needs is asked for, and when it is there, nothing but the list.
func TestPullTwice(t *testing.T) {
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	r := request(s, cache)
	var told []int64
	r.Progress = func(done, all int64) { told = append(told, done, all) }
	path, err := Pull(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "models--org--model", "snapshots", hubtest.Commit), path)
	whole(t, cache)
	require.Equal(t, []int64{1_050_188, 1_050_188}, told[len(told)-2:])
	found, err := hub.Cache{Dir: cache}.Find("org/model")
	require.NoError(t, err)
	require.Equal(t, path, found)
	files := map[string]int{}
	for _, a := range s.Asked() {
		if name, ok := strings.CutPrefix(a.Path, "/org/model/resolve/"+hubtest.Commit+"/"); ok {
			files[name]++
		}
	}
	require.Equal(t, 1, files["tokenizer_config.json"]+files["vocab.json"], "one blob")
	require.Len(t, files, len(needed)-1)
	for _, name := range []string{"README.md", "consolidated.safetensors", "pytorch_model.bin", "onnx/model.onnx"} {
		require.Zero(t, files[name])
	}
	before := len(s.Asked())
	_, err = Pull(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, s.Asked()[before:], 1+5, "the commit, and five pages of the list")
	r.Revision = hubtest.Commit
	_, err = Pull(t.Context(), r)
	require.NoError(t, err)
	whole(t, cache)
}

// The token goes to the hub, and nowhere else: not to where files are, nor to another host that lists.
func TestToken(t *testing.T) {
	s := hubtest.New(t, "org/model", model()...)
	s.Token = "hf_secret"
	r := request(s, t.TempDir())
	r.Hub.Token = s.Token
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/org/model/resolve/"+hubtest.Commit+"/config.json" { // on the hub itself
			http.Redirect(w, r, "/org/model/resolve/main/config.json", http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	_, err := Pull(t.Context(), r)
	require.NoError(t, err)
	whole(t, r.Cache.Dir)
	at := map[bool]int{}
	for _, a := range s.Asked() {
		at[a.Store]++
		require.Equal(t, a.Store, a.Token == "", a.Path)
	}
	require.Equal(t, 3, at[true])

	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/tree/") {
			w.Header().Set("Link", "<"+s.Store+"/next>; rel=\"next\"")
			fmt.Fprint(w, "[]")
		}
		return strings.Contains(r.URL.Path, "/tree/")
	}
	_, err = Pull(t.Context(), r)
	require.Error(t, err)
	last := s.Asked()[len(s.Asked())-1]
	require.Equal(t, hubtest.Asked{Path: "/next", Store: true}, last)

	// The same host under https, another port or another name is another host.
	c, err := newClient(Hub{Endpoint: "https://Hub.example/"}, nil)
	require.NoError(t, err)
	for address, same := range map[string]bool{"https://hub.example/a": true, "https://hub.example:443/a": true,
		"http://hub.example/a": false, "https://hub.example:444/": false, "https://cdn.hub.example/": false,
		"https://hub.example.evil/": false, "https://hub.example@evil/": false} {
		u, err := c.endpoint.Parse(address)
		require.NoError(t, err)
		require.Equal(t, same, sameOrigin(u, c.endpoint), address)
	}
}

// What the hub refuses is said in words, without the token, and is not tried again.
func TestRefusals(t *testing.T) {
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-Error-Code", code)
			w.WriteHeader(status)
			return true
		}
	}
	to := func(address string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, address, http.StatusFound)
			return true
		}
	}
	before := func(f func(http.ResponseWriter, *http.Request) bool) func(*hubtest.Server, *Request) {
		return func(s *hubtest.Server, _ *Request) { s.Before = f }
	}
	for want, change := range map[string]func(s *hubtest.Server, r *Request){
		"has no such model, or it is a private one: no token was sent: HF_TOKEN": func(_ *hubtest.Server, r *Request) {
			r.Name = "org/other"
		},
		"or it is a private one: the token that was sent has no access (401 Unauth": func(s *hubtest.Server, r *Request) {
			s.Token, r.Hub.Token = "hf_right", "hf_wrong"
		},
		"gated: its page on 127.0.0.1:": func(s *hubtest.Server, _ *Request) { s.Gated, s.Token = true, "hf_right" },
		"an agreement, and the token that was sent has no access": func(s *hubtest.Server, r *Request) {
			s.Gated, s.Token, r.Hub.Token = true, "hf_right", "hf_wrong"
		},
		"the model has no such revision":              func(_ *hubtest.Server, r *Request) { r.Revision = "v7" },
		"\"ftp://x\" is no http or https address":     func(_ *hubtest.Server, r *Request) { r.Hub.Endpoint = "ftp://x" },
		"the token has characters that no token has":  func(_ *hubtest.Server, r *Request) { r.Hub.Token = "hf_a\nHost: x" },
		"\"../org\" is no name of a repository":       func(_ *hubtest.Server, r *Request) { r.Name = "../org" },
		"the revision \"../../x\"":                    func(_ *hubtest.Server, r *Request) { r.Revision = "../../x" },
		"127.0.0.1 refuses":                           before(answer(403, "")),
		"(404 Not Found)":                             before(answer(404, "")),
		"410 Gone":                                    before(answer(410, "")),
		"the hub lists a file that it does not have":  before(onFile(answer(404, "EntryNotFound"))),
		"redirects more than 10 times":                before(to("/again")),
		"redirects to where nothing is fetched from":  before(to("file:///etc/passwd")),
		"is no answer of a hub: line 1, column 1:":    before(text("<html>")),
		"names no commit: \"../..\"":                  before(text(`{"sha": "../.."}`)),
		"in the coding gzip, which nobody asked":      before(onFile(coded)),
		"500 Internal Server Error (tried 3 times)":   before(answer(500, "")),
		"429 Too Many Requests, and asks to wait 1h0": before(later("3600")),
	} {
		s := hubtest.New(t, "org/model", model()...)
		r := request(s, t.TempDir())
		change(s, &r)
		var notes strings.Builder
		r.Note = func(text string) { notes.WriteString(text) }
		p, err := newPull(r)
		if err == nil {
			p.client.pace.first, p.client.pace.tries = time.Millisecond, 3
			_, err = p.told(t.Context())
		}
		require.ErrorContains(t, err, strings.ReplaceAll(want, "127.0.0.1 ", strings.TrimPrefix(s.URL, "http://")+" "))
		require.True(t, strings.HasPrefix(err.Error(), "[pull] ") || strings.HasPrefix(err.Error(), "[hub] "), err.Error())
		require.NotContains(t, err.Error()+notes.String(), "hf_")
		require.NotContains(t, err.Error()+notes.String(), "signature")
		nothing(t, r.Cache.Dir)
	}
}

// onFile has a function answer for files on the hub's own host.
func onFile(f func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/resolve/") && f(w, r)
	}
}

func text(s string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		fmt.Fprint(w, s)
		return true
	}
}

func coded(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Encoding", "gzip")
	return text("?")(w, nil)
}

func later(after string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
}

// What the hub asks for is waited for.
func TestRetryAfter(t *testing.T) {
	s := hubtest.New(t, "org/model", model()...)
	var asked atomic.Int32
	s.Before = func(w http.ResponseWriter, r *http.Request) bool { return asked.Add(1) == 1 && later("1")(w, r) }
	p, began := try(t, request(s, t.TempDir())), time.Now()
	_, err := p.told(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Contains(t, p.notes.String(), "429 Too Many Requests; trying again in 1s")
	for want, h := range map[time.Duration]http.Header{
		0:                {"Retry-After": {"soon"}},
		7 * time.Second:  {"Retry-After": {"7"}, "Ratelimit": {`"api";r=0;t=55`}},
		55 * time.Second: {"Ratelimit": {`"api"; r=0; t=55`}},
		time.Hour:        {"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}},
	} {
		require.InDelta(t, want.Seconds(), retryAfter(h).Seconds(), 2)
	}
	require.Zero(t, retryAfter(http.Header{"Ratelimit": {`"api";r=9;t=55`}}), "requests are left")
}

// A connection that ends is opened again where it ended, as long as something comes.
func TestCutConnections(t *testing.T) {
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	onBig(s, func(w http.ResponseWriter, r *http.Request) bool { cut(w, r, 100_000); return true })
	p := try(t, request(s, cache))
	_, err := p.told(t.Context())
	require.NoError(t, err)
	whole(t, cache)
	got := ranges(s)
	require.GreaterOrEqual(t, len(got), 7)
	require.Equal(t, "", got[0])
	require.Equal(t, "bytes=100000-", got[1])
	require.Equal(t, "bytes=600000-", got[len(got)-1])
	require.Contains(t, p.notes.String(), "trying again in 1ms")
}

// A pull that had to give up is gone on with by the next one, whatever the answer to a range.
func TestResume(t *testing.T) {
	for name, answer := range map[string]func(s *hubtest.Server, w http.ResponseWriter, r *http.Request) bool{
		"by its range": func(*hubtest.Server, http.ResponseWriter, *http.Request) bool { return false },
		"as a whole": func(_ *hubtest.Server, _ http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("Range")
			return false
		},
		"there is no such part": func(_ *hubtest.Server, w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") == "" {
				return false
			}
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return true
		},
	} {
		s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
		var sent atomic.Bool
		onBig(s, func(w http.ResponseWriter, r *http.Request) bool {
			n := 300_000
			if sent.Swap(true) {
				n = 0
			}
			cut(w, r, n)
			return true
		})
		_, err := try(t, request(s, cache)).told(t.Context())
		require.ErrorContains(t, err, "(tried 3 times)", name)
		require.EqualValues(t, 300_000, part(t, cache))
		nothing(t, cache)
		before := len(ranges(s))
		onBig(s, func(w http.ResponseWriter, r *http.Request) bool { return answer(s, w, r) })
		_, err = Pull(t.Context(), request(s, cache))
		require.NoError(t, err, name)
		require.Equal(t, "bytes=300000-", ranges(s)[before])
		whole(t, cache)
	}
}

// What had come before is compared, too: where it is wrong or too long, all of the file is fetched.
func TestResumeOfWhatIsWrong(t *testing.T) {
	for name, old := range map[string][]byte{
		"other bytes": bytesOf(200_000, 9), "all of it, other bytes": bytesOf(700_000, 9), "too long": bytesOf(700_001, 1),
	} {
		s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
		blobs := filepath.Join(cache, "models--org--model", "blobs")
		require.NoError(t, os.MkdirAll(blobs, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(blobs, bigHash+".incomplete"), old, 0o666))
		p := try(t, request(s, cache))
		var done, all int64
		p.request.Progress = func(d, a int64) { done, all = d, a }
		_, err := p.told(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, len(old) <= 700_000, strings.Contains(p.notes.String(), "is fetched anew"), name)
		require.Equal(t, []int64{1_050_188, 1_050_188}, []int64{done, all}, name)
		whole(t, cache)
	}
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	blobs := filepath.Join(cache, "models--org--model", "blobs")
	require.NoError(t, os.MkdirAll(blobs, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(blobs, bigHash+".incomplete"), bytesOf(700_000, 1), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(blobs, "230d5f4da0da586aad26ead694ea67cd15bd6df1"), nil, 0o666))
	_, err := Pull(t.Context(), request(s, cache))
	require.NoError(t, err)
	require.Empty(t, ranges(s), "all of it was there")
	whole(t, cache)
}

// A hub that gives other bytes than it lists leaves nothing in the cache.
func TestWrongFiles(t *testing.T) {
	long := func(w http.ResponseWriter, _ *http.Request) bool { // of no stated length
		_, _ = w.Write(bytesOf(700_000, 1))
		w.(http.Flusher).Flush()
		_, _ = w.Write([]byte("!"))
		return true
	}
	for want, change := range map[string]func(s *hubtest.Server, files []hubtest.File){
		"is not what the hub lists: its hash is 88dc8e39": func(_ *hubtest.Server, files []hubtest.File) {
			files[6].Hash = strings.Repeat("ab", 32)
		},
		"config.json is not what the hub lists: its hash is 230d5f4da0d": func(_ *hubtest.Server, files []hubtest.File) {
			files[3].Hash = strings.Repeat("ab", 20)
		},
		"has 700000 bytes, its list says 699999": func(_ *hubtest.Server, files []hubtest.File) { files[6].Size = 699_999 },
		"has 700000 bytes, its list says 700001": func(_ *hubtest.Server, files []hubtest.File) { files[6].Size = 700_001 },
		"has more than 700000 bytes":             func(s *hubtest.Server, _ []hubtest.File) { onBig(s, long) },
		"asked for bytes 5-699999/, got \"bytes 0-": func(s *hubtest.Server, _ []hubtest.File) {
			onBig(s, func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Range") == "" {
					cut(w, r, 5)
				}
				r.Header.Set("Range", "bytes=0-5")
				return false
			})
		},
		"names \"model-3.safetensors\", which the repository does not": func(_ *hubtest.Server, files []hubtest.File) {
			files[8].Text = []byte(`{"weight_map": {"a": "model-3.safetensors"}}`)
		},
		"model.safetensors.index.json names no file": func(_ *hubtest.Server, files []hubtest.File) {
			files[8].Text = []byte(`{}`)
		},
	} {
		s, cache := hubtest.New(t, "org/model"), t.TempDir()
		files := model()
		change(s, files)
		s.Set(files...)
		_, err := try(t, request(s, cache)).told(t.Context())
		require.ErrorContains(t, err, want)
		nothing(t, cache)
		if strings.Contains(want, "hash") || strings.Contains(want, "more than") {
			left, err := filepath.Glob(filepath.Join(cache, "models--org--model", "blobs", "*.incomplete"))
			require.NoError(t, err)
			for _, path := range left { // that of another file may be there, which the error has ended
				require.NotContains(t, path, bigHash)
				require.NotContains(t, path, "abab")
			}
		}
	}
}

// full is a file on a disk that has room for some bytes.
type full struct {
	*os.File
	room int
}

func (f *full) Write(p []byte) (int, error) {
	n, err := f.File.Write(p[:min(f.room, len(p))])
	if f.room -= n; err == nil && n < len(p) {
		err = &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return n, err
}

// Where the disk is full the error says so, and when there is room again the pull goes on from what had come.
func TestDiskFull(t *testing.T) {
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	p := try(t, request(s, cache))
	p.open = func(path string) (partial, error) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		return &full{f, 250_000}, err
	}
	_, err := p.told(t.Context())
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "cannot be written after 250000 of ")
	nothing(t, cache)
	p.open = openPartial
	_, err = p.told(t.Context())
	require.NoError(t, err)
	whole(t, cache)
}

// Two pulls of one model at once fetch each file once.
func TestTwoPulls(t *testing.T) {
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	onBig(s, func(http.ResponseWriter, *http.Request) bool { time.Sleep(300 * time.Millisecond); return false })
	var both sync.WaitGroup
	var paths, notes [2]string
	var errs [2]error
	for i := range 2 {
		p := try(t, request(s, cache))
		both.Go(func() {
			paths[i], errs[i] = p.told(t.Context())
			notes[i] = p.notes.String()
		})
	}
	both.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	require.Equal(t, paths[0], paths[1])
	require.Contains(t, notes[0]+notes[1], "is being fetched by another program: waiting for it")
	require.Len(t, ranges(s), 1)
	whole(t, cache)
}

// A pull that is ended keeps what has come, and a reader sees nothing of it.
func TestInterruptedPull(t *testing.T) {
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	stop := errors.New("Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	onBig(s, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "700000")
		_, _ = w.Write(bytesOf(700_000, 1)[:400_000])
		w.(http.Flusher).Flush()
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if info, err := os.Stat(filepath.Join(cache, "models--org--model", "blobs", bigHash+".incomplete")); err == nil &&
				info.Size() == 400_000 {
				break
			}
		}
		cancel(stop)
		<-r.Context().Done()
		return true
	})
	_, err := try(t, request(s, cache)).told(ctx)
	require.ErrorIs(t, err, stop)
	require.EqualValues(t, 400_000, part(t, cache))
	nothing(t, cache)
	s.Answer()
	_, err = Pull(t.Context(), request(s, cache))
	require.NoError(t, err)
	require.Equal(t, []string{"", "bytes=400000-"}, ranges(s))
	whole(t, cache)

	// While another program has the lock, a pull can be ended, too.
	p := try(t, request(s, filepath.Join(t.TempDir(), "other")))
	unlock, err := p.lock(t.Context(), file{path: "config.json", hash: "230d5f4da0da586aad26ead694ea67cd15bd6df1"})
	require.NoError(t, err)
	defer unlock()
	ctx, cancel = context.WithCancelCause(t.Context())
	p.request.Note = func(text string) {
		if strings.Contains(text, "another program") {
			cancel(stop)
		}
	}
	_, err = p.told(ctx)
	require.ErrorIs(t, err, stop)
}

// A connection on which nothing comes is given up, and opened again.
func TestStalledConnection(t *testing.T) {
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	var stalled atomic.Int32
	onBig(s, func(w http.ResponseWriter, r *http.Request) bool {
		switch stalled.Add(1) {
		case 1: // before an answer
		case 2: // in the middle of one
			w.Header().Set("Content-Length", "700000")
			_, _ = w.Write(bytesOf(700_000, 1)[:5000])
			w.(http.Flusher).Flush()
		default:
			return false
		}
		<-r.Context().Done()
		return true
	})
	p := try(t, request(s, cache))
	p.client.pace.stall = 300 * time.Millisecond
	_, err := p.told(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"", "", "bytes=5000-"}, ranges(s))
	require.Contains(t, p.notes.String(), "nothing has come for too long; trying again")
	whole(t, cache)
}

// A name or a hash that leads out of the cache is refused, whoever lists it, and nothing is written.
func TestPathTricks(t *testing.T) {
	for _, path := range []string{"../config.json", "/etc/config.json", "a/../../config.json", "a//b", "./config.json",
		"..", "", ".", "a/.", `..\config.json`, `a\b`, "C:/x", "c:x", "config.json\x00", "a/"} {
		outside := t.TempDir()
		cache := filepath.Join(outside, "a", "b")
		s := hubtest.New(t, "org/model", append(model(), hubtest.File{Path: path, Text: []byte("{}")})...)
		_, err := Pull(t.Context(), request(s, cache))
		require.ErrorContains(t, err, "that is no place in a repository", path)
		require.ErrorContains(t, err, "[pull] the name "+strconv.Quote(path))
		require.Equal(t, "d--------- .\n", contents(t, outside, 0))
	}
	for _, hash := range []string{"../../../x", "", strings.Repeat("A", 40), strings.Repeat("a", 64)} {
		files := model()
		files[3].Hash = hash
		if hash == "" {
			files[3].Hash = " "
		}
		cache := filepath.Join(t.TempDir(), "cache")
		_, err := Pull(t.Context(), request(hubtest.New(t, "org/model", files...), cache))
		require.ErrorContains(t, err, `lists "config.json" with something that is no hash`)
		require.NoDirExists(t, cache)
	}
}

// Where links cannot be made, files are moved to the snapshot, or copied if two of them have the same bytes.
func TestWithoutLinks(t *testing.T) {
	t.Setenv("HF_HUB_DISABLE_SYMLINKS", "1")
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	path, err := Pull(t.Context(), request(s, cache))
	require.NoError(t, err)
	for _, f := range model() {
		for _, name := range needed {
			if f.Path == name {
				info, err := os.Lstat(filepath.Join(path, name))
				require.NoError(t, err)
				require.True(t, info.Mode().IsRegular())
				got, err := os.ReadFile(filepath.Join(path, name))
				require.NoError(t, err)
				require.Equal(t, f.Text, got)
			}
		}
	}
	left, err := os.ReadDir(filepath.Join(cache, "models--org--model", "blobs"))
	require.NoError(t, err)
	require.Empty(t, left)
	before := len(s.Asked())
	_, err = Pull(t.Context(), request(s, cache))
	require.NoError(t, err)
	for _, a := range s.Asked()[before:] {
		require.NotContains(t, a.Path, "resolve")
	}
}

// A new commit is pulled beside the old one, which main stands for until all of the new one is there.
func TestNewCommit(t *testing.T) {
	s, cache := hubtest.New(t, "org/model", model()...), t.TempDir()
	old, err := Pull(t.Context(), request(s, cache))
	require.NoError(t, err)
	files := model()
	files[7].Text = bytesOf(300_001, 77)
	s.Set(files...)
	s.Main = strings.Repeat("5", 40)
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		found, err := hub.Cache{Dir: cache}.Find("org/model")
		if err != nil || found != old {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	before := len(ranges(s))
	path, err := Pull(t.Context(), request(s, cache))
	require.NoError(t, err)
	require.Equal(t, s.Main, filepath.Base(path))
	require.Len(t, ranges(s), before, "what is the same is there")
	found, err := hub.Cache{Dir: cache}.Find("org/model")
	require.NoError(t, err)
	require.Equal(t, path, found)
	text, err := os.ReadFile(filepath.Join(path, "model-00002-of-00002.safetensors"))
	require.NoError(t, err)
	require.Equal(t, files[7].Text, text)
	text, err = os.ReadFile(filepath.Join(old, "model-00002-of-00002.safetensors"))
	require.NoError(t, err)
	require.Equal(t, model()[7].Text, text)
}

// One .gguf file is chosen by its name or a part of it.
func TestGGUF(t *testing.T) {
	file := func(name string) hubtest.File { return hubtest.File{Path: name, Text: []byte(name), LFS: true} }
	several := []hubtest.File{file("m-Q4_K_M.gguf"), file("m-Q4_K_S.gguf"), file("m-Q8_0.gguf"), file("mmproj-m-f16.gguf"),
		file("m.imatrix.gguf"), file("big/m-F32-00001-of-00002.gguf"), file("big/m-F32-00002-of-00002.gguf"),
		{Path: "config.json", Text: []byte("{}")}}
	for part, want := range map[string]string{"q8_0": "m-Q8_0.gguf", "m-Q4_K_S.gguf": "m-Q4_K_S.gguf",
		"Q4_K_M": "m-Q4_K_M.gguf"} {
		s := hubtest.New(t, "org/model", several...)
		r := request(s, t.TempDir())
		r.GGUF = part
		path, err := Pull(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, want, filepath.Base(path))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		found, err := r.Cache.Find("org/model")
		require.NoError(t, err)
		require.Equal(t, path, found)
	}
	for part, want := range map[string]string{
		"Q4_K": "which .gguf file? --gguf takes a name or a part of it: m-Q4_K_M.gguf, m-Q4_K_S.gguf",
		"":     "which .gguf file? ", "IQ1": `no .gguf file has "IQ1" in its name: m-Q4_K_M.gguf, m-Q4_K_S.gguf, m-Q8_0.gguf`,
		"F32": "m-F32-00001-of-00002.gguf is a part of a model",
	} {
		r := request(hubtest.New(t, "org/model", several...), t.TempDir())
		r.GGUF = part
		_, err := Pull(t.Context(), r)
		require.ErrorContains(t, err, want)
	}
	one := request(hubtest.New(t, "org/model", file("a.gguf"), file("mmproj.gguf")), t.TempDir())
	path, err := Pull(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, "a.gguf", filepath.Base(path))
	for want, files := range map[string][]hubtest.File{
		"no model*.safetensors and no .gguf file": {file("pytorch_model.bin"), {Path: "config.json", Text: []byte("{}")}},
		"there is no config.json":                 {file("model.safetensors")},
		"no .gguf file has \"x\" in its name: there is none": {file("model.safetensors"),
			{Path: "config.json", Text: []byte("{}")}},
	} {
		r := request(hubtest.New(t, "org/model", files...), t.TempDir())
		if strings.Contains(want, `"x"`) {
			r.GGUF = "x"
		}
		_, err := Pull(t.Context(), r)
		require.ErrorContains(t, err, want)
	}
}

// The environment says which hub and which token, as it does to the hub's own tools.
func TestDefaultHub(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT", "HF_HUB_OFFLINE",
		"HF_HUB_DISABLE_IMPLICIT_TOKEN"} {
		t.Setenv(name, "")
	}
	t.Setenv("HF_HOME", home)
	want := func(endpoint, token string) {
		t.Helper()
		h, err := DefaultHub()
		require.NoError(t, err)
		require.Equal(t, Hub{endpoint, token}, h)
	}
	want("https://huggingface.co", "")
	require.NoError(t, os.WriteFile(filepath.Join(home, "token"), []byte("hf_file\n"), 0o600))
	want("https://huggingface.co", "hf_file")
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, []byte("hf_other"), 0o600))
	t.Setenv("HF_TOKEN_PATH", other)
	want("https://huggingface.co", "hf_other")
	t.Setenv("HUGGING_FACE_HUB_TOKEN", "hf_old")
	want("https://huggingface.co", "hf_old")
	t.Setenv("HF_TOKEN", " hf_new\n")
	t.Setenv("HF_ENDPOINT", "http://localhost:1")
	want("http://localhost:1", "hf_new")
	t.Setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "yes")
	want("http://localhost:1", "")
	t.Setenv("HF_HUB_OFFLINE", "1")
	_, err := DefaultHub()
	require.ErrorContains(t, err, "HF_HUB_OFFLINE is set")
}
