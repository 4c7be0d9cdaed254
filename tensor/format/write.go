package format

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mlxlua/mlxlua/tensor"
)

// WriteFile has write make a file's contents under a name of its own beside path, waits until the disk has them, and
// then gives it the name: at no time is there half a file of that name, even if the machine fails. It replaces a file
// that is there, with its permissions; what is no regular file, such as a pipe, is written to. Errors name op and path.
func WriteFile(op, path string, write func(w io.Writer) error) error {
	target, mode := path, os.FileMode(0o666)
	old, err := os.Stat(path)
	if err == nil && !old.IsDir() && !old.Mode().IsRegular() {
		return writeThrough(op, path, write)
	}
	if err == nil {
		mode = old.Mode().Perm()
		if to, err := filepath.EvalSymlinks(path); err == nil { // a link stays one
			target = to
		}
	}
	part := target + "." + strconv.FormatUint(rand.Uint64(), 36) // os.CreateTemp's files are their owner's only
	f, failed := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if failed != nil {
		return fmt.Errorf("[%s] cannot create %s: %w", op, path, cause(failed))
	}
	if err == nil {
		_ = f.Chmod(mode) // the umask took some away; where there are no permissions it fails
	}
	failed = fill(f, write)
	if failed == nil {
		failed = f.Sync()
	}
	if closed := f.Close(); failed == nil {
		failed = closed
	}
	if failed == nil {
		failed = os.Rename(part, target)
	}
	if failed != nil {
		_ = os.Remove(part) // the first error is the one to tell
		return fmt.Errorf("[%s] %s: %w", op, path, cause(failed))
	}
	if dir, err := os.Open(filepath.Dir(target)); err == nil { // the name too is to survive
		_ = dir.Sync() // not every file system can
		_ = dir.Close()
	}
	return nil
}

// writeThrough writes to what is no regular file.
func writeThrough(op, path string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = fill(f, write)
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("[%s] %s: %w", op, path, cause(err))
	}
	return nil
}

// fill has write write to f by way of a buffer.
func fill(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// pieceBytes is how much is written between two looks at the context.
const pieceBytes = 16 << 20

// writeElements evaluates an array and writes its elements in row-major order; those that lie so are not copied.
func writeElements(ctx context.Context, w io.Writer, x *tensor.Array) error {
	spec, v, release, err := x.HostView(ctx)
	if err != nil {
		return err
	}
	defer release()
	n := spec.NBytes()
	if n == 0 {
		return nil
	}
	if !v.Contiguous(spec.Shape) {
		b, err := x.Bytes(ctx)
		if err != nil {
			return err
		}
		return writePieces(ctx, w, b)
	}
	return v.Guard(func() error { return writePieces(ctx, w, v.Bytes[v.OffsetBytes:][:n]) })
}

func writePieces(ctx context.Context, w io.Writer, b []byte) error {
	for len(b) > 0 {
		if ctx != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(len(b), pieceBytes)
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
