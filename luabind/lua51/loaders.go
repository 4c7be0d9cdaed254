package lua51

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// replaceLoaders makes everything that compiles source text go through Compile, and os.exit unwind to the host.
func (s *State) replaceLoaders() {
	L := s.L
	load := func(src io.Reader, name string) int {
		L := s.L
		f, err := chunkFunction(s, bufio.NewReader(src), name)
		if err != nil {
			L.Push(lua.LNil)
			L.Push(lua.LString(err.Error()))
			return 2
		}
		L.Push(f)
		return 1
	}
	loadNamed := func(text, source string) int {
		n := load(strings.NewReader(text), chunkName(source))
		if f, ok := s.L.Get(-1).(*lua.LFunction); ok && text[:min(len(text), 1)] != dumped[:1] && !s.opt.Sandbox {
			setSource(f.Proto, source) // which nobody could ask for in a sandbox
		}
		return n
	}
	loadString := func(L *lua.LState) int {
		text := textArg(L, 1)
		return loadNamed(text, optional(L, 2, textArg, text))
	}
	L.SetGlobal("loadstring", s.Func(loadString))
	L.SetGlobal("load", s.Func(func(L *lua.LState) int {
		if L.Get(1).Type() == lua.LTString {
			return loadString(L)
		}
		name := optional(L, 2, textArg, "=(load)")
		text, failure := readPieces(s, L)
		if failure != nil {
			L.Push(lua.LNil)
			L.Push(failure)
			return 2
		}
		return loadNamed(text, name)
	}))
	if !s.opt.Libraries {
		for _, name := range []string{"dofile", "loadfile"} {
			L.SetGlobal(name, lua.LNil)
		}
		searchModules(s, load)
		return
	}
	loadFile := func(L *lua.LState, path string) int {
		cannot := func(what string, err error) int {
			text, _ := systemError(err)
			L.Push(lua.LNil)
			L.Push(lua.LString("cannot " + what + " " + path + ": " + text))
			return 2
		}
		f := os.Stdin
		if path != standardInput {
			var err error
			if f, err = os.Open(path); err != nil {
				return cannot("open", err)
			}
			defer f.Close()
		}
		src, err := WithoutShebang(f)
		if err != nil {
			return cannot("read", err)
		}
		return load(src, path)
	}
	L.SetGlobal("loadfile", s.Func(func(L *lua.LState) int { return loadFile(L, optional(L, 1, textArg, standardInput)) }))
	L.SetGlobal("dofile", s.Through(func(L *lua.LState) int {
		path := optional(L, 1, textArg, standardInput)
		top := L.GetTop()
		if loadFile(L, path) == 2 {
			s.throw(L, L.Get(-1))
		}
		L.Call(0, lua.MultRet)
		return L.GetTop() - top
	}))
	s.replaceSearcher(loadFile)
	s.replaceExit()
}

// standardInput is the name of the chunk that is read where no file is told.
const standardInput = "stdin"

// readPieces is the text that the first argument, a function, gives piece by piece, or the value of the error that this
// ends with.
func readPieces(s *State, L *lua.LState) (pieces string, failure lua.LValue) {
	reader := L.CheckFunction(1)
	out := s.longText("load")
	defer out.end()
	for {
		got, err := s.Protect(nil, reader)
		if err != nil {
			failure = errorValue(err)
			if _, exits := ExitStatus(failure); exits {
				L.Error(failure, 0)
			}
			return "", failure
		}
		if len(got) == 0 || got[0] == lua.LNil {
			return out.text.String(), nil
		}
		piece, ok := asText(got[0])
		if !ok {
			return "", lua.LString(placeOfCaller(L) + "reader function must return a string")
		}
		if piece == "" {
			return out.text.String(), nil
		}
		out.add(piece)
		if most := s.opt.Limits.Source; most > 0 && int64(out.text.Len()) > most {
			s.raise(limitError("the source text has more than %d bytes, which is the limit", most))
		}
	}
}

// chunkFunction is the function of a chunk: of a text, or of what string.dump gave.
func chunkFunction(s *State, src *bufio.Reader, name string) (*lua.LFunction, error) {
	if !s.opt.Sandbox {
		text, is, err := isDumped(src)
		if err != nil {
			return nil, err
		}
		if is {
			return undumped(s.Context(), s, text)
		}
	}
	proto, err := s.Compile(s.Context(), src, name)
	if err != nil {
		return nil, err
	}
	m := Measure{seen: map[any]struct{}{}}
	m.code(proto)
	s.made(m.bytes)
	return s.L.NewFunctionFromProto(proto), nil
}

// How many bytes Lua 5.1 shows of a chunk's name, of that of a file, and of a text.
const (
	shownName = 59
	shownFile = 52
	shownText = 43
)

// chunkName is how messages call the chunk of a text that load or loadstring got: what stands after "=" or "@", else
// the first line of the text, cut where it is long, as Lua 5.1 does.
func chunkName(source string) string {
	if name, ok := strings.CutPrefix(source, "="); ok {
		return name[:min(len(name), shownName)]
	}
	if name, ok := strings.CutPrefix(source, "@"); ok {
		if len(name) > shownFile {
			name = "..." + name[len(name)-shownFile:]
		}
		return name
	}
	line := source[:min(len(source), shownText)]
	if end := strings.IndexAny(line, "\r\n"); end >= 0 {
		line = line[:end]
	}
	if len(line) < len(source) {
		line += "..."
	}
	return `[string "` + line + `"]`
}

// searchModules makes require look for files in Options.Modules only: a.b is a/b.lua or a/b/init.lua there.
func searchModules(s *State, load func(src io.Reader, name string) int) {
	loaders, ok := s.L.GetField(s.L.GetGlobal("package"), "loaders").(*lua.LTable)
	if !ok {
		return
	}
	loaders.RawSetInt(2, s.Func(func(L *lua.LState) int {
		name := textArg(L, 1)
		file := strings.ReplaceAll(name, ".", "/")
		var tried strings.Builder
		for _, candidate := range []string{file + ".lua", file + "/init.lua"} {
			if s.opt.Modules == nil || !fs.ValidPath(candidate) {
				continue
			}
			f, err := s.opt.Modules.Open(candidate)
			if err != nil {
				fmt.Fprintf(&tried, "\n\tno module file '%s'", candidate)
				continue
			}
			defer f.Close()
			if load(f, candidate) == 2 {
				L.Error(lua.LString(fmt.Sprintf("error loading module '%s' from file '%s':\n\t%s", name, candidate,
					L.Get(-1))), 0)
			}
			return 1
		}
		L.Push(lua.LString(tried.String()))
		return 1
	}))
}

// replaceSearcher makes require compile files through Compile.
func (s *State) replaceSearcher(loadFile func(L *lua.LState, path string) int) {
	lib := s.library(lua.LoadLibName)
	loaders, ok := lib.RawGetString("loaders").(*lua.LTable)
	if !ok {
		return
	}
	loaders.RawSetInt(2, s.Func(func(L *lua.LState) int {
		name := textArg(L, 1)
		path, ok := asText(L.GetField(kept(s, lua.LoadLibName), "path"))
		if !ok {
			s.throw(L, lua.LString("'package.path' must be a string"))
		}
		file := strings.ReplaceAll(name, ".", string(os.PathSeparator))
		var tried strings.Builder
		for _, pattern := range strings.Split(path, ";") {
			candidate := strings.ReplaceAll(pattern, "?", file)
			if candidate == "" {
				continue
			}
			if _, err := os.Stat(candidate); err != nil {
				fmt.Fprintf(&tried, "\n\tno file '%s'", candidate)
				continue
			}
			if loadFile(L, candidate) == 2 {
				L.Error(lua.LString(fmt.Sprintf("error loading module '%s' from file '%s':\n\t%s", name, candidate,
					L.Get(-1))), 0)
			}
			return 1
		}
		L.Push(lua.LString(tried.String()))
		return 1
	}))
}

// WithoutShebang leaves an empty line in place of a first line that starts with #, so that line numbers stay right.
func WithoutShebang(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	first, err := b.Peek(1)
	if err == io.EOF || err == nil && first[0] != '#' {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		c, err := b.ReadByte()
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			return b, b.UnreadByte()
		}
	}
}
