package fetch

import (
	"context"
	"crypto/sha1" // git's hash of a file
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// partial is what blobs/HASH.incomplete is written by.
type partial interface {
	io.ReadWriteCloser
	Truncate(size int64) error
	Seek(offset int64, whence int) (int64, error)
	Sync() error
}

func openPartial(path string) (partial, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
}

// download is one file on its way.
type download struct {
	file
	c    *client
	u    *url.URL
	out  partial
	sum  hash.Hash
	have int64         // bytes that are there, and in sum
	done *atomic.Int64 // bytes of all files that are there
}

// fetch has a file's bytes in its blob when it returns nil. Another program that fetches them is waited for.
func (p *pull) fetch(ctx context.Context, f file) error {
	unlock, err := p.lock(ctx, f)
	if err != nil {
		return err
	}
	defer unlock()
	path := p.blob(f)
	if p.present(f) { // another program has been quicker
		p.done.Add(f.size)
		return nil
	}
	out, err := p.open(path + ".incomplete")
	if err != nil {
		return fmt.Errorf("[pull] %s cannot be written: %w", f.path, err)
	}
	d := &download{file: f, c: p.client, u: p.address(f), out: out, done: &p.done}
	keep, err := d.whole(ctx)
	if closed := out.Close(); err == nil && closed != nil {
		err = fmt.Errorf("[pull] %s cannot be written: %w", f.path, closed)
	}
	switch {
	case err == nil:
		err = os.Rename(path+".incomplete", path)
	case !keep:
		err = errors.Join(err, os.Remove(path+".incomplete"))
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.brought[f.hash] = true
	return nil
}

// whole fetches what is missing, and compares all of it with its hash. keep reports whether what came is worth going
// on from.
func (d *download) whole(ctx context.Context) (keep bool, err error) {
	if err := d.begin(); err != nil {
		return true, err
	}
	for resumed := d.have > 0; ; resumed = false {
		err := d.c.trying(ctx, func() (bool, error) {
			before := d.have
			err := d.receive(ctx)
			return d.have > before, err
		})
		if err != nil {
			return !errors.Is(err, errSize), err
		}
		got := hex.EncodeToString(d.sum.Sum(nil))
		if got == d.hash {
			if err := d.out.Sync(); err != nil {
				return true, d.unwritten(err)
			}
			return true, nil
		}
		if !resumed {
			return false, fmt.Errorf("[pull] %s is not what the hub lists: its hash is %s, want %s", d.path, got, d.hash)
		}
		d.c.note(fmt.Sprintf("%s: what had come before is wrong; it is fetched anew", d.path))
		if err := d.restart(); err != nil {
			return true, err
		}
	}
}

// begin counts and sums up what an earlier pull has left.
func (d *download) begin() error {
	if err := d.rewind(); err != nil {
		return err
	}
	n, err := io.Copy(d.sum, io.LimitReader(d.out, d.size+1))
	if err != nil {
		return fmt.Errorf("[pull] %s: what has come of it cannot be read: %w", d.path, err)
	}
	d.have = n
	d.done.Add(n)
	if n > d.size {
		return d.restart()
	}
	return nil
}

// rewind goes to the beginning, with a new sum.
func (d *download) rewind() error {
	if d.sum = sha256.New(); !d.lfs {
		d.sum = sha1.New()
		fmt.Fprintf(d.sum, "blob %d\x00", d.size)
	}
	if _, err := d.out.Seek(0, io.SeekStart); err != nil {
		return d.unwritten(err)
	}
	return nil
}

// restart drops what there is.
func (d *download) restart() error {
	d.done.Add(-d.have)
	d.have = 0
	if err := d.out.Truncate(0); err != nil {
		return d.unwritten(err)
	}
	return d.rewind()
}

func (d *download) unwritten(err error) error {
	return fmt.Errorf("[pull] %s cannot be written after %d of %d bytes, which are kept: %w", d.path, d.have, d.size, err)
}

// errSize is in the errors of files that are not as long as the hub says.
var errSize = errors.New("[pull] the size is not what the hub lists")

// receive asks for what is missing, and writes what comes of it.
func (d *download) receive(ctx context.Context) error {
	if d.have == d.size {
		return nil
	}
	resp, err := d.c.get(ctx, d.u, d.have)
	if errors.Is(err, errRange) && d.have > 0 {
		if err := d.restart(); err != nil {
			return err
		}
		resp, err = d.c.get(ctx, d.u, 0)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return fmt.Errorf("[pull] %s comes in the coding %s, which nobody asked for", d.path, coding)
	}
	if resp.StatusCode == http.StatusPartialContent {
		want := fmt.Sprintf("bytes %d-%d/", d.have, d.size-1)
		if got := resp.Header.Get("Content-Range"); !strings.HasPrefix(got, want) {
			return fmt.Errorf("[pull] %s: asked for %s, got %q", d.path, want, got)
		}
	} else if err := d.restart(); err != nil { // all of it comes
		return err
	}
	if n := resp.ContentLength; n >= 0 && n != d.size-d.have {
		return fmt.Errorf("%w: %s has %d bytes, its list says %d", errSize, d.path, d.have+n, d.size)
	}
	buffer := make([]byte, 256<<10)
	for {
		n, err := resp.Body.Read(buffer)
		if int64(n) > d.size-d.have {
			return fmt.Errorf("%w: %s has more than %d bytes", errSize, d.path, d.size)
		}
		if n > 0 {
			written, wrong := d.out.Write(buffer[:n])
			d.sum.Write(buffer[:written])
			d.have += int64(written)
			d.done.Add(int64(written))
			if wrong != nil {
				return d.unwritten(wrong)
			}
		}
		switch {
		case err == io.EOF && d.have < d.size:
			return &passing{text: fmt.Sprintf("%s: it ended after %d of %d bytes", d.u.Host, d.have, d.size)}
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// lock waits until no other program fetches a file. It locks the file that the hub's own tools lock.
func (p *pull) lock(ctx context.Context, f file) (unlock func(), err error) {
	path := p.repository.Lock(f.hash)
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(p.blob(f))} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, uncached(err)
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o664)
	if err != nil {
		return nil, uncached(err)
	}
	_ = file.Chmod(0o664) // whoever shares the cache is to lock it, too; this fails where another one has made it
	for told := false; ; told = true {
		locked, err := tryLock(file)
		if locked {
			return func() { file.Close() }, nil // which unlocks it
		}
		if err == nil {
			if !told {
				p.client.note(f.path + " is being fetched by another program: waiting for it")
			}
			err = pause(ctx, lockInterval)
		}
		if err != nil {
			file.Close()
			return nil, err
		}
	}
}
