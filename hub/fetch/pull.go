package fetch

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/hub"
)

// Request says what Pull downloads.
type Request struct {
	Name     string // of the repository: org/name
	Revision string // a branch, a tag or a commit; "" for main
	GGUF     string // the name of a .gguf file or a part of it, where a repository has several, or other weights too
	Hub      Hub
	Cache    hub.Cache

	// Progress is told how many bytes of how many are there, and Note what else somebody who waits wants to read. Both
	// are called on Pull's goroutine, and may be nil.
	Progress func(done, all int64)
	Note     func(text string)
}

// Timings of a pull: how many files are fetched at once, how often progress is told and a lock is tried.
const (
	atOnce           = 4
	progressInterval = 100 * time.Millisecond
	lockInterval     = 100 * time.Millisecond
)

// pull is one call of Pull.
type pull struct {
	request    Request
	client     *client
	repository hub.Repository
	commit     string
	open       func(path string) (partial, error)
	notes      chan string
	done, all  atomic.Int64 // bytes of the files that are fetched, as far as they are known

	mu      sync.Mutex
	brought map[string]bool // hashes of blobs that were not there before
}

// Pull has the files of a model in the cache and gives the path to read it from: the snapshot, or a .gguf file in it.
// What is there already is not asked for. When ctx ends, what has come is kept for the next pull.
func Pull(ctx context.Context, r Request) (path string, err error) {
	p, err := newPull(r)
	if err != nil {
		return "", err
	}
	return p.told(ctx)
}

// told runs the pull on a goroutine of its own, and tells the request's functions of it on this one.
func (p *pull) told(ctx context.Context) (path string, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		path, err = p.run(ctx)
	}()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case text := <-p.notes:
			if p.request.Note != nil {
				p.request.Note(text)
			}
			continue
		case <-tick.C:
		case <-ended:
			over = true
		}
		if all := p.all.Load(); p.request.Progress != nil && all > 0 {
			p.request.Progress(p.done.Load(), all)
		}
	}
	return path, err
}

// newPull checks a request.
func newPull(r Request) (*pull, error) {
	if err := hub.CheckName(r.Name); err != nil {
		return nil, err
	}
	if r.Revision == "" {
		r.Revision = "main"
	}
	if err := checkPath(r.Revision); err != nil {
		return nil, fmt.Errorf("[pull] the revision %q: %w", r.Revision, err)
	}
	p := &pull{request: r, repository: r.Cache.Repository(r.Name), open: openPartial, notes: make(chan string),
		brought: map[string]bool{}}
	var err error
	p.client, err = newClient(r.Hub, func(text string) { p.notes <- text })
	return p, err
}

// run is the pull itself.
func (p *pull) run(ctx context.Context) (string, error) {
	var err error
	if p.commit, err = p.client.commit(ctx, p.request.Name, p.request.Revision); err != nil {
		return "", err
	}
	tree, err := p.client.tree(ctx, p.request.Name, p.commit)
	if err != nil {
		return "", err
	}
	files, err := first(tree, p.request.GGUF)
	if err != nil {
		return "", err
	}
	gguf := strings.HasSuffix(files[0].path, ".gguf")
	if err := p.fetchAll(ctx, files); err != nil {
		return "", err
	}
	if !gguf {
		index := ""
		if i := slices.IndexFunc(files, func(f file) bool { return f.path == weightsIndex }); i >= 0 {
			index = p.content(files[i])
		}
		more, err := weights(tree, index)
		if err != nil {
			return "", err
		}
		if err := p.fetchAll(ctx, more); err != nil {
			return "", err
		}
		files = append(files, more...)
	}
	if err := p.publish(tree, files); err != nil {
		return "", err
	}
	if gguf {
		return p.snapshot(files[0]), nil
	}
	return p.repository.Path("snapshots", p.commit), nil
}

// fetchAll has the blobs of files, several at once. The first error ends it.
func (p *pull) fetchAll(ctx context.Context, files []file) error {
	missing := map[string]file{} // by hash: a file may be there under two names
	var bytes int64
	for _, f := range files {
		if !p.present(f) && missing[f.hash].hash == "" {
			missing[f.hash] = f
			bytes += f.size
		}
	}
	if len(missing) == 0 {
		return nil
	}
	p.all.Add(bytes)
	p.client.note(fmt.Sprintf("%s: %d of %d files to fetch, %s", p.request.Name, len(missing), len(files), Size(bytes)))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, f := range files {
		if missing[f.hash].path != f.path {
			continue
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if ctx.Err() != nil {
				return
			}
			if err := p.fetch(ctx, f); err != nil {
				cancel(err)
				return
			}
			p.client.note(fmt.Sprintf("%s, %s", f.path, Size(f.size)))
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// present reports whether a file's bytes are in the cache.
func (p *pull) present(f file) bool {
	return hasSize(p.blob(f), f.size) || hasSize(p.snapshot(f), f.size)
}

// content is the path of a file's bytes, which are present.
func (p *pull) content(f file) string {
	if path := p.blob(f); hasSize(path, f.size) {
		return path
	}
	return p.snapshot(f)
}

func (p *pull) blob(f file) string { return p.repository.Path("blobs", f.hash) }

func (p *pull) snapshot(f file) string {
	return p.repository.Path(append([]string{"snapshots", p.commit}, strings.Split(f.path, "/")...)...)
}

// address is where the hub has a file.
func (p *pull) address(f file) *url.URL {
	parts := append(strings.Split(p.request.Name, "/"), "resolve", p.commit)
	return p.client.at(append(parts, strings.Split(f.path, "/")...)...)
}

// Size is a number of bytes in words.
func Size(bytes int64) string {
	switch n := float64(bytes); {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", n/1e3)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// pause waits, until ctx ends at the latest.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
