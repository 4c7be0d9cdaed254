package lua51

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// handle is the value of a file handle of Lua's. What it stands for is closed when nothing reaches it any more.
type handle struct{ *file }

// file is an open file, or a pipe to a process. What is written waits in a buffer as C's does.
type file struct {
	s        *State
	os       *os.File      // nil: where print writes
	in       *bufio.Reader // nil: it cannot be read
	out      *bufio.Writer // nil: it cannot be written
	buffers  string        // when what is written waits: full, line or no
	process  *exec.Cmd     // of a pipe
	ended    chan struct{} // closed when the process has ended, after the pipe was closed
	name     string        // of a file that is removed with its handle; "": it stays
	standard bool
	closed   bool
}

// fileBytes is what a file takes, with its buffers.
const fileBytes = 9 << 10

// files are those of a state that are open. Others than scripts close them too: Go's collector, by a goroutine of its
// own.
type files struct {
	mu   sync.Mutex
	open map[*file]struct{}
}

// blocking reads what may keep a script waiting, until the call from the host is to end.
type blocking struct{ f *file }

// Read reads what there is.
func (b blocking) Read(into []byte) (int, error) {
	ctx := b.f.s.Context()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = b.f.os.SetReadDeadline(time.Unix(1, 0)) // which some files do not have: they wait
		close(ended)
	})
	n, err := b.f.os.Read(into)
	if !stop() {
		<-ended
		_ = b.f.os.SetReadDeadline(time.Time{})
	}
	return n, err
}

// printed writes where print does.
type printed struct{ s *State }

// Write writes a text.
func (p printed) Write(text []byte) (int, error) { return p.s.opt.Stdout.Write(text) }

// newHandle is a handle of a file that may be read or written.
func newHandle(s *State, f *file, reads, writes bool) *lua.LUserData {
	f.s = s
	var from io.Reader = f.os
	if f.process != nil || f.standard {
		from = blocking{f}
	}
	if reads {
		f.in = bufio.NewReader(from)
	}
	if f.buffers == "" {
		f.buffers = "full"
	}
	switch {
	case writes && f.os == nil:
		f.out = bufio.NewWriter(printed{s})
	case writes:
		f.out = bufio.NewWriter(f.os)
	}
	h := &handle{f}
	if !f.standard {
		s.files.mu.Lock()
		if s.files.open == nil {
			s.files.open = map[*file]struct{}{}
		}
		s.files.open[f] = struct{}{}
		s.files.mu.Unlock()
		runtime.AddCleanup(h, func(f *file) {
			f.s.files.mu.Lock()
			defer f.s.files.mu.Unlock()
			f.abandon()
		}, f)
	}
	return s.NewUserData(h, kept(s, fileMetatable), fileBytes)
}

// flushFiles writes what waits in the buffers of all files.
func flushFiles(s *State) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	for f := range s.files.open {
		if f.out != nil {
			_ = f.out.Flush()
		}
	}
}

// Close ends a state: its files are written.
func Close(s *State) {
	s.L.Close()
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	for f := range s.files.open {
		f.abandon()
	}
}

// abandon closes a file that no script can use any more. A process whose output nobody reads is of no use either.
func (f *file) abandon() {
	_ = f.end()
	if f.process != nil && f.in != nil {
		_ = f.process.Process.Kill()
	}
}

// close closes a file.
func (f *file) close() error {
	f.s.files.mu.Lock()
	defer f.s.files.mu.Unlock()
	return f.end()
}

// end closes a file while nobody else is at the files.
func (f *file) end() error {
	if f.closed {
		return nil
	}
	f.closed = true
	delete(f.s.files.open, f)
	var err error
	if f.out != nil {
		err = f.out.Flush()
	}
	if e := f.os.Close(); err == nil {
		err = e
	}
	if f.name != "" {
		_ = os.Remove(f.name)
	}
	if f.process != nil {
		f.ended = make(chan struct{})
		go func() {
			_ = f.process.Wait()
			close(f.ended)
		}()
	}
	return err
}

// flush writes what waits in the buffer. What could not be written is dropped, as C does.
func (f *file) flush() error {
	if f.out == nil {
		return nil
	}
	err := f.out.Flush()
	if err != nil {
		f.out.Reset(f.writer())
	}
	return err
}

func (f *file) writer() io.Writer {
	if f.os == nil {
		return printed{f.s}
	}
	return f.os
}

// write writes a text, behind what was read.
func (f *file) write(text string) error {
	if f.out == nil {
		return syscall.EBADF
	}
	if f.in != nil && f.in.Buffered() > 0 {
		if _, err := f.seek(0, io.SeekCurrent); err != nil {
			return err
		}
	}
	_, err := f.out.WriteString(text)
	if err == nil && (f.buffers == "full" || f.buffers == "line" && !strings.Contains(text, "\n")) {
		return nil
	}
	if e := f.flush(); err == nil {
		err = e
	}
	return err
}

// reading prepares for reading.
func (f *file) reading() error {
	if f.in == nil {
		return syscall.EBADF
	}
	return f.flush()
}

// seek goes to a place in the file.
func (f *file) seek(offset int64, whence int) (int64, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	on := f.os
	if on == nil {
		if on, _ = f.s.opt.Stdout.(*os.File); on == nil {
			return 0, syscall.ESPIPE
		}
	}
	if f.in != nil && whence == io.SeekCurrent {
		offset -= int64(f.in.Buffered())
	}
	at, err := on.Seek(offset, whence)
	if err == nil && f.in != nil {
		f.in.Reset(f.os)
	}
	return at, err
}

// setBuffer says when what is written waits, and for how many bytes; 0: as many as it was.
func (f *file) setBuffer(buffers string, size int) error {
	err := f.flush()
	if f.out != nil && size > 0 {
		f.out = bufio.NewWriterSize(f.writer(), size)
	}
	if !f.standard || f.os != nil { // print writes to the same place, and nothing of it waits
		f.buffers = buffers
	}
	return err
}

// openFile opens a file in a mode of C's fopen.
func openFile(name, mode string) (f *file, reads, writes bool, err error) {
	flags := 0
	for i, c := range []byte(mode) {
		switch {
		case i == 0 && c == 'r':
			reads = true
		case i == 0 && c == 'w':
			writes, flags = true, os.O_CREATE|os.O_TRUNC
		case i == 0 && c == 'a':
			writes, flags = true, os.O_CREATE|os.O_APPEND
		case i > 0 && c == '+':
			reads, writes = true, true
		case i > 0 && c == 'x':
			flags |= os.O_EXCL
		}
	}
	switch {
	case reads && writes:
		flags |= os.O_RDWR
	case writes:
		flags |= os.O_WRONLY
	case !reads:
		return nil, false, false, syscall.EINVAL
	}
	const everybody = 0o666 // but for what the process leaves out
	on, err := os.OpenFile(name, flags, everybody)
	return &file{os: on}, reads, writes, err
}

// openProcess starts a command of the shell with a pipe to what it reads, or from what it writes.
func openProcess(s *State, command string, writes bool) (*file, error) {
	flushFiles(s)
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := shell(command)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, to, os.Stderr
	ours, its := from, to
	if writes {
		c.Stdin, c.Stdout = from, os.Stdout
		ours, its = to, from
	}
	err = c.Start()
	_ = its.Close()
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	return &file{os: ours, process: c}, nil
}
