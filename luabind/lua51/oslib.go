package lua51

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// openOS replaces the os library, but for os.exit and os.clock.
func (s *State) openOS() {
	lib := s.library(lua.OsLibName)
	s.Method(lib, "date", with(s, osDate))
	s.Method(lib, "time", with(s, osTime))
	s.Method(lib, "difftime", func(L *lua.LState) int {
		L.Push(lua.LNumber(integerArg(L, 1) - optional(L, 2, integerArg, 0)))
		return 1
	})
	s.Method(lib, "execute", with(s, osExecute))
	s.Method(lib, "getenv", func(L *lua.LState) int {
		v, ok := os.LookupEnv(textArg(L, 1))
		if !ok {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LString(v))
		return 1
	})
	s.Method(lib, "remove", func(L *lua.LState) int {
		name := textArg(L, 1)
		return pushOutcome(L, os.Remove(name), name)
	})
	s.Method(lib, "rename", func(L *lua.LState) int {
		from, to := textArg(L, 1), textArg(L, 2)
		return pushOutcome(L, os.Rename(from, to), from)
	})
	s.Method(lib, "setlocale", func(L *lua.LState) int {
		locale := optional(L, 1, textArg, "C")
		optional(L, 2, optionArg("all", "collate", "ctype", "monetary", "numeric", "time"), "all")
		if locale != "C" && locale != "POSIX" && locale != "" { // there is no other one
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LString("C"))
		return 1
	})
	s.Method(lib, "tmpname", func(L *lua.LState) int {
		f, err := os.CreateTemp("", "lua_")
		if err != nil || f.Close() != nil {
			s.fail("unable to generate a unique filename")
		}
		L.Push(lua.LString(f.Name()))
		return 1
	})
}

// pushOutcome pushes what functions give that may fail as the system says: true, or nil, the error, with the name of a
// file before it if there is one, and its number.
func pushOutcome(L *lua.LState, err error, name string) int {
	if err == nil {
		L.Push(lua.LTrue)
		return 1
	}
	text, number := systemError(err)
	if name != "" {
		text = name + ": " + text
	}
	L.Push(lua.LNil)
	L.Push(lua.LString(text))
	L.Push(lua.LNumber(number))
	return 3
}

// systemError is what C says of an error of the system, and its number; 0: it is another error.
func systemError(err error) (text string, number int) {
	var no syscall.Errno
	switch {
	case errors.As(err, &no):
	case errors.Is(err, os.ErrExist):
		no = syscall.EEXIST
	case errors.Is(err, os.ErrNotExist):
		no = syscall.ENOENT
	case errors.Is(err, os.ErrClosed):
		no = syscall.EBADF
	default:
		return err.Error(), 0
	}
	text = no.Error()
	return strings.ToUpper(text[:1]) + text[1:], int(no)
}

// shell is a command of the system's shell.
func shell(command string) *exec.Cmd {
	if runtime.GOOS == "windows" {
		return exec.Command("cmd", "/C", command)
	}
	return exec.Command("/bin/sh", "-c", command)
}

// osExecute is os.execute: without a command it says that there is a shell, else it gives what C's system does, where
// the status of a command that has ended is 256 times what it has ended with.
func osExecute(s *State, L *lua.LState) int {
	if L.Get(1) == lua.LNil {
		L.Push(lua.LNumber(1))
		return 1
	}
	c := shell(textArg(L, 1))
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	flushFiles(s)
	err := c.Start()
	if err == nil {
		stop := context.AfterFunc(s.Context(), func() { _ = c.Process.Kill() })
		err = c.Wait()
		stop()
		s.poll()
	}
	status := -1
	if c.ProcessState != nil {
		status = statusOf(c.ProcessState)
	} else if err == nil {
		status = 0
	}
	L.Push(lua.LNumber(status))
	return 1
}

// statusOf is how a process has ended, as C's wait says it.
func statusOf(p *os.ProcessState) int {
	w, ok := p.Sys().(syscall.WaitStatus)
	switch {
	case runtime.GOOS == "windows" || !ok:
		return p.ExitCode()
	case w.Signaled():
		status := int(w.Signal())
		if w.CoreDump() {
			status |= 0x80
		}
		return status
	}
	return w.ExitStatus() << 8
}

// osTime is os.time.
func osTime(s *State, L *lua.LState) int {
	if L.Get(1) == lua.LNil {
		L.Push(lua.LNumber(time.Now().Unix()))
		return 1
	}
	t := L.CheckTable(1)
	field := func(name string, otherwise int) int {
		if v, ok := operandNumber(L.GetField(t, name)); ok {
			return int(int32(integer(v)))
		}
		if otherwise < 0 {
			s.fail("field '%s' missing in date table", name)
		}
		return otherwise
	}
	sec, minute, hour := field("sec", 0), field("min", 0), field("hour", 12)
	day, month, year := field("day", -1), field("month", -1), field("year", -1)
	at := time.Date(year, time.Month(month), day, hour, minute, sec, 0, time.Local)
	if v := L.GetField(t, "isdst"); v != lua.LNil && lua.LVAsBool(v) != at.IsDST() {
		const summer = 3600 // seconds that clocks are put forward
		if at.IsDST() {
			at = at.Add(summer * time.Second)
		} else {
			at = at.Add(-summer * time.Second)
		}
	}
	L.Push(lua.LNumber(at.Unix()))
	return 1
}

// greenwich is the zone that C calls so.
var greenwich = time.FixedZone("GMT", 0)

// osDate is os.date.
func osDate(s *State, L *lua.LState) int {
	format := optional(L, 1, textArg, "%c")
	at := time.Now()
	if L.Get(2) != lua.LNil {
		at = time.Unix(int64(integerArg(L, 2)), 0)
	}
	if utc, ok := strings.CutPrefix(format, "!"); ok {
		format, at = utc, at.In(greenwich)
	}
	const most = 1<<31 - 1 // the last year of C's
	if at.Year() > most || at.Year() < -most {
		L.Push(lua.LNil)
		return 1
	}
	if format == "*t" {
		t := s.NewTable(0, 16)
		for name, n := range map[string]int{"sec": at.Second(), "min": at.Minute(), "hour": at.Hour(), "day": at.Day(),
			"month": int(at.Month()), "year": at.Year(), "wday": int(at.Weekday()) + 1, "yday": at.YearDay()} {
			t.RawSetString(name, lua.LNumber(n))
		}
		t.RawSetString("isdst", lua.LBool(at.IsDST()))
		L.Push(t)
		return 1
	}
	out := s.longText("os.date")
	defer out.end()
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out.addByte(format[i])
			continue
		}
		i++
		out.add(dated(at, format[i]))
	}
	L.Push(out.value())
	return 1
}
