package luabind

import (
	"errors"
	"os"
	"path/filepath"
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

// someFiles refuses the call where scripts may use no files at all.
func (a *args) someFiles(allowed []string) {
	if len(allowed) == 0 {
		a.fail("this state has no access to files")
	}
}
