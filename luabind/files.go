package luabind

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// allowedFiles are the files and folders that a state may use without Lua's io library, as the system knows them:
// without symbolic links.
type allowedFiles struct{ read, write []string }

// allow resolves what a state may read and write. What is missing allows nothing.
func allow(read, write []string) allowedFiles {
	resolved := func(paths []string) (out []string) {
		for _, p := range paths {
			if real, err := realPath(p); err == nil {
				out = append(out, real)
			}
		}
		return out
	}
	return allowedFiles{resolved(read), resolved(write)}
}

// realPath is the path of what is there, absolute and without symbolic links.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// within reports whether a path without links is one of the allowed ones, or below one.
func within(allowed []string, path string) bool {
	for _, a := range allowed {
		if rel, err := filepath.Rel(a, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// readable is the path of a file that the call may read: argument 0.
func (a *args) readable() string { return a.readablePath(a.Text(0)) }

// readablePath is the path of a file that the call may read, of which path is the name.
func (a *args) readablePath(path string) string {
	if a.s.files {
		return path
	}
	a.someFiles(a.s.allowed.read)
	real, err := realPath(path)
	switch {
	case errors.Is(err, os.ErrNotExist): // what there is elsewhere is nobody's business
		if abs, err := filepath.Abs(path); err == nil && within(a.s.allowed.read, abs) {
			a.fail("there is no file %q", path)
		}
	case err == nil && within(a.s.allowed.read, real):
		if info, err := os.Stat(real); err == nil && !info.Mode().IsRegular() {
			a.fail("%q is no file", path)
		}
		return real
	}
	a.fail("this state may not read %q", path)
	return ""
}

// writable is the path of a file that the call may write, of which path is the name.
func (a *args) writable(path string) string {
	if a.s.files {
		return path
	}
	a.someFiles(a.s.allowed.write)
	folder, err := realPath(filepath.Dir(path))
	if err == nil {
		real := filepath.Join(folder, filepath.Base(path))
		info, err := os.Lstat(real)
		if within(a.s.allowed.write, real) && (err != nil || info.Mode().IsRegular()) {
			return real
		}
	}
	a.fail("this state may not write %q", path)
	return ""
}

// written are the files that a state without Lua's io library has written, by their paths without links.
type written struct {
	unbounded bool
	most      int64 // bytes
	bytes     map[string]int64
	total     int64 // that they have together
}

// leastFile is what a file counts for at least: a block of a file system.
const leastFile = 4 << 10

// file writes a file to where writable has said that it may be, of as many bytes as the state's files may still have.
func (t *written) file(op, path string, fill func(w io.Writer) error) error {
	if t.unbounded {
		return format.WriteFile(op, path, fill)
	}
	w := &boundedWriter{left: t.most - t.total + t.bytes[path]}
	w.refusal = fmt.Errorf("[limits] the file has more than %d bytes, and all files of the script may have %d: %w",
		max(w.left, 0), t.most, lua51.ErrLimit)
	before := w.left
	err := format.WriteFile(op, path, func(to io.Writer) error {
		if w.to = to; w.left < leastFile {
			return w.refusal
		}
		return fill(w)
	})
	if err == nil {
		if t.bytes == nil {
			t.bytes = map[string]int64{}
		}
		n := max(before-w.left, leastFile)
		t.total += n - t.bytes[path]
		t.bytes[path] = n
	}
	return err
}

// boundedWriter writes so many bytes at most.
type boundedWriter struct {
	to      io.Writer
	left    int64
	refusal error
}

// Write writes all of b, or nothing.
func (w *boundedWriter) Write(b []byte) (int, error) {
	if w.left -= int64(len(b)); w.left < 0 {
		return 0, w.refusal
	}
	return w.to.Write(b)
}

// someFiles refuses the call where scripts may use no files at all.
func (a *args) someFiles(allowed []string) {
	if len(allowed) == 0 {
		a.fail("this state has no access to files")
	}
}
