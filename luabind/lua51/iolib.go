package lua51

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	lua "github.com/yuin/gopher-lua"
)

// The names of the files that are used where none is told, and of the metatable of files.
const (
	defaultInput  = "input"
	defaultOutput = "output"
	fileMetatable = "FILE*"
)

// openIO makes the io library.
func (s *State) openIO() {
	lib, methods := s.L.RegisterModule(lua.IoLibName, nil).(*lua.LTable), s.NewTable(0, 16)
	keep(s, fileMetatable, methods)
	methods.RawSetString("__index", methods)
	for name, std := range map[string]struct {
		f    *file
		with string
	}{
		"stdin":  {&file{os: os.Stdin, standard: true}, defaultInput},
		"stdout": {&file{standard: true, buffers: "no"}, defaultOutput},
		"stderr": {&file{os: os.Stderr, standard: true, buffers: "no"}, ""},
	} {
		h := newHandle(s, std.f, name == "stdin", name != "stdin")
		lib.RawSetString(name, h)
		keep(s, std.with, h)
	}
	for name, f := range map[string]func(s *State, L *lua.LState, f *file, first int) int{
		"read": readFile, "write": writeFile, "flush": flushFile, "close": closeFile,
	} {
		s.Method(methods, name, func(L *lua.LState) int { return f(s, L, fileArg(s, L, 1), 2) })
	}
	s.Method(methods, "lines", func(L *lua.LState) int {
		fileArg(s, L, 1)
		L.Push(linesOf(s, L.Get(1), false))
		return 1
	})
	s.Method(methods, "seek", with(s, seekFile))
	s.Method(methods, "setvbuf", func(L *lua.LState) int {
		f := fileArg(s, L, 1)
		buffers := optionArg("no", "full", "line")(L, 2)
		return pushOutcome(L, f.setBuffer(buffers, min(optional(L, 3, integerArg, 0), maxBuffer)), "")
	})
	s.Method(methods, "__tostring", func(L *lua.LState) int {
		h := handleArg(L, 1)
		if h.closed {
			L.Push(lua.LString("file (closed)"))
		} else {
			L.Push(lua.LString(fmt.Sprintf("file (%p)", h.file)))
		}
		return 1
	})
	s.Method(lib, "read", func(L *lua.LState) int { return readFile(s, L, defaultFile(s, defaultInput), 1) })
	s.Method(lib, "write", func(L *lua.LState) int { return writeFile(s, L, defaultFile(s, defaultOutput), 1) })
	s.Method(lib, "flush", func(L *lua.LState) int { return flushFile(s, L, defaultFile(s, defaultOutput), 1) })
	s.Method(lib, "close", func(L *lua.LState) int {
		if L.GetTop() == 0 {
			return closeFile(s, L, defaultFile(s, defaultOutput), 1)
		}
		return closeFile(s, L, fileArg(s, L, 1), 1)
	})
	s.Method(lib, "type", func(L *lua.LState) int {
		ud, _ := L.CheckAny(1).(*lua.LUserData)
		kind := lua.LValue(lua.LNil)
		if ud != nil {
			if h, ok := ud.Value.(*handle); ok {
				if kind = lua.LString("file"); h.closed {
					kind = lua.LString("closed file")
				}
			}
		}
		L.Push(kind)
		return 1
	})
	openOpening(s, lib)
}

// maxBuffer is how many bytes the longest buffer has.
const maxBuffer = 1 << 20

// openOpening makes the functions of the io library that open files.
func openOpening(s *State, lib *lua.LTable) {
	s.Method(lib, "open", func(L *lua.LState) int {
		name := textArg(L, 1)
		f, reads, writes, err := openFile(name, optional(L, 2, textArg, "r"))
		if err != nil {
			return pushOutcome(L, err, name)
		}
		L.Push(newHandle(s, f, reads, writes))
		return 1
	})
	opened := func(L *lua.LState, mode string) *lua.LUserData {
		name := textArg(L, 1)
		f, reads, writes, err := openFile(name, mode)
		if err != nil {
			text, _ := systemError(err)
			L.ArgError(1, name+": "+text)
		}
		return newHandle(s, f, reads, writes)
	}
	for name, mode := range map[string]string{defaultInput: "r", defaultOutput: "w"} {
		s.Method(lib, name, func(L *lua.LState) int {
			if v := L.Get(1); v != lua.LNil {
				if _, ok := asText(v); ok {
					keep(s, name, opened(L, mode))
				} else {
					fileArg(s, L, 1)
					keep(s, name, v)
				}
			}
			L.Push(kept(s, name))
			return 1
		})
	}
	s.Method(lib, "lines", func(L *lua.LState) int {
		if L.Get(1) == lua.LNil {
			L.Push(linesOf(s, kept(s, defaultInput), false))
		} else {
			L.Push(linesOf(s, opened(L, "r"), true))
		}
		return 1
	})
	s.Method(lib, "popen", func(L *lua.LState) int {
		command, mode := textArg(L, 1), optional(L, 2, textArg, "r")
		f, err := &file{}, error(syscall.EINVAL)
		if mode == "r" || mode == "w" {
			f, err = openProcess(s, command, mode == "w")
		}
		if err != nil {
			return pushOutcome(L, err, command)
		}
		L.Push(newHandle(s, f, mode == "r", mode == "w"))
		return 1
	})
	s.Method(lib, "tmpfile", func(L *lua.LState) int {
		on, err := os.CreateTemp("", "lua_")
		if err != nil {
			return pushOutcome(L, err, "")
		}
		f := &file{os: on}
		if os.Remove(on.Name()) != nil { // the system keeps what is open
			f.name = on.Name()
		}
		L.Push(newHandle(s, f, true, true))
		return 1
	})
}

// handleArg is an argument that is a file handle.
func handleArg(L *lua.LState, n int) *handle {
	if ud, ok := L.Get(n).(*lua.LUserData); ok {
		if h, ok := ud.Value.(*handle); ok {
			return h
		}
	}
	L.ArgError(n, "FILE* expected, got "+L.Get(n).Type().String())
	return nil
}

// fileArg is an argument that is an open file.
func fileArg(s *State, L *lua.LState, n int) *file {
	h := handleArg(L, n)
	if h.closed {
		s.fail("attempt to use a closed file")
	}
	return h.file
}

// defaultFile is the file that is used where none is told.
func defaultFile(s *State, name string) *file {
	h := kept(s, name).(*lua.LUserData).Value.(*handle)
	if h.closed {
		s.fail("standard %s file is closed", name)
	}
	return h.file
}

func closeFile(s *State, L *lua.LState, f *file, _ int) int {
	if f.standard {
		L.Push(lua.LNil)
		L.Push(lua.LString("cannot close standard file"))
		return 2
	}
	err := f.close()
	if f.process != nil {
		stop := context.AfterFunc(s.Context(), func() { _ = f.process.Process.Kill() })
		<-f.ended
		stop()
		s.poll()
	}
	return pushOutcome(L, err, "")
}

func flushFile(s *State, L *lua.LState, f *file, _ int) int { return pushOutcome(L, f.flush(), "") }

// writeFile writes the arguments from one on.
func writeFile(s *State, L *lua.LState, f *file, first int) int {
	var failed error
	for n := first; n <= L.GetTop(); n++ {
		if text := textArg(L, n); failed == nil {
			failed = f.write(text)
		}
		s.poll()
	}
	return pushOutcome(L, failed, "")
}

// seekFile is file:seek.
func seekFile(s *State, L *lua.LState) int {
	f := fileArg(s, L, 1)
	whence := optional(L, 2, optionArg("set", "cur", "end"), "cur")
	offset := optional(L, 3, integerArg, 0)
	at, err := f.seek(int64(offset), map[string]int{"set": io.SeekStart, "cur": io.SeekCurrent, "end": io.SeekEnd}[whence])
	if err != nil {
		return pushOutcome(L, err, "")
	}
	L.Push(lua.LNumber(at))
	return 1
}

// linesOf is the function that gives the lines of a file, and closes it at the end if ends is set.
func linesOf(s *State, of lua.LValue, ends bool) *lua.LFunction {
	return s.Func(func(L *lua.LState) int {
		f := L.Get(lua.UpvalueIndex(1)).(*lua.LUserData).Value.(*handle).file
		if f.closed {
			s.fail("file is already closed")
		}
		line, err := lua.LValue(lua.LNil), f.reading()
		if err == nil {
			line, err = readLine(s, f)
		}
		if err != nil {
			s.poll()
			text, _ := systemError(err)
			s.fail("%s", text)
		}
		if line == lua.LNil && ends {
			_ = f.close()
		}
		L.Push(line)
		return 1
	}, of)
}

// readFile reads what the arguments from one on tell, or a line without any. It stops where there is no more.
func readFile(s *State, L *lua.LState, f *file, first int) int {
	formats := L.GetTop() - first + 1
	err := f.reading()
	count := 0
	for n := first; err == nil && (n < first+formats || n == first); n++ {
		var got lua.LValue
		got, err = readOne(s, L, f, n, formats <= 0)
		if err != nil {
			break
		}
		L.Push(got)
		count++
		if got == lua.LNil {
			break
		}
	}
	if err != nil {
		s.poll()
		return pushOutcome(L, err, "")
	}
	return count
}

// readOne reads what an argument tells; nil: there is no more.
func readOne(s *State, L *lua.LState, f *file, n int, line bool) (lua.LValue, error) {
	if line {
		return readLine(s, f)
	}
	if size, ok := L.Get(n).(lua.LNumber); ok {
		if size == 0 {
			_, err := f.in.Peek(1)
			return orNil("", err == nil, err)
		}
		text, err := readBytes(s, f, integer(float64(size)))
		return orNil(text, text != "", err)
	}
	format, _ := L.Get(n).(lua.LString)
	if !strings.HasPrefix(string(format), "*") {
		L.ArgError(n, "invalid option")
	}
	switch (string(format) + " ")[1] {
	case 'n':
		return scanNumber(s, f)
	case 'l':
		return readLine(s, f)
	case 'a':
		text, err := readBytes(s, f, -1)
		return orNil(text, true, err)
	}
	L.ArgError(n, "invalid format")
	return nil, nil
}

// orNil is a text, nil without one, or the error if that is not the file's end.
func orNil(text string, some bool, err error) (lua.LValue, error) {
	switch {
	case err != nil && err != io.EOF:
		return lua.LNil, err
	case !some:
		return lua.LNil, nil
	}
	return lua.LString(text), nil
}

// readLine reads a line, without its end.
func readLine(s *State, f *file) (lua.LValue, error) {
	out := s.longText("read")
	defer out.end()
	for {
		piece, err := f.in.ReadSlice('\n')
		if text, ok := strings.CutSuffix(string(piece), "\n"); ok {
			s.Charge(stringBytes + int64(len(text)))
			out.add(text)
			return out.value(), nil
		}
		out.add(string(piece))
		if err != nil && len(piece) < f.in.Size() { // else the line goes on
			return orNil(out.text.String(), out.text.Len() > 0, err)
		}
	}
}

// readBytes reads so many bytes, as many as there are if that is negative.
func readBytes(s *State, f *file, most int) (string, error) {
	out := s.longText("read")
	defer out.end()
	for most < 0 || out.text.Len() < most {
		if _, err := f.in.Peek(1); err != nil {
			return out.text.String(), err
		}
		size := f.in.Buffered()
		if most >= 0 {
			size = min(size, most-out.text.Len())
		}
		piece, _ := f.in.Peek(size)
		out.add(string(piece))
		_, _ = f.in.Discard(size)
	}
	return out.text.String(), nil
}

// scanNumber reads a number as C's scanf does, which takes what could begin one.
func scanNumber(s *State, f *file) (lua.LValue, error) {
	const most = 1 << 12 // bytes
	var text strings.Builder
	var failed error
	accept := func(set string) bool {
		next, err := f.in.Peek(1)
		if err != nil && err != io.EOF {
			failed = err
		}
		if err != nil || text.Len() == most || strings.IndexByte(set, next[0]) < 0 {
			return false
		}
		text.WriteByte(next[0])
		_, _ = f.in.Discard(1)
		return true
	}
	for accept(" \t\n\v\f\r") {
		text.Reset()
		s.poll()
	}
	accept("+-")
	digits, exponent := "0123456789", "eE"
	some := accept("0")
	hex := some && accept("xX")
	if hex {
		digits, exponent, some = digits+"abcdefABCDEF", "pP", false
	}
	all := func() {
		for accept(digits) {
			some = true
		}
	}
	all()
	if accept(".") {
		all()
	}
	number := text.String()
	if hex {
		number += "p0"
	}
	if some && accept(exponent) {
		accept("+-")
		before := text.Len()
		for accept("0123456789") {
		}
		if text.Len() > before { // else it was none, but is gone
			number = text.String()
		}
	}
	if failed != nil {
		return lua.LNil, failed
	}
	v, err := strconv.ParseFloat(number, 64)
	if !some || err != nil && v == 0 {
		return lua.LNil, nil
	}
	return lua.LNumber(v), nil
}
