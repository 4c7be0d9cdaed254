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
		text := L.CheckString(1)
		return loadNamed(text, L.OptString(2, text))
	}
	L.SetGlobal("loadstring", s.Func(loadString))
	L.SetGlobal("load", s.Func(func(L *lua.LState) int {
		if L.Get(1).Type() == lua.LTString {
			return loadString(L)
		}
		fn := L.CheckFunction(1)
		name := L.OptString(2, "=(load)")
		var b strings.Builder
		for {
			L.Push(fn)
			L.Call(0, 1)
			piece, ok := L.Get(-1).(lua.LString)
			L.Pop(1)
			if !ok || piece == "" {
				break
			}
			b.WriteString(string(piece))
			if most := s.opt.Limits.Source; most > 0 && int64(b.Len()) > most {
				s.raise(limitError("the source text has more than %d bytes, which is the limit", most))
			}
		}
		return loadNamed(b.String(), name)
	}))
	if !s.opt.Libraries {
		for _, name := range []string{"dofile", "loadfile"} {
			L.SetGlobal(name, lua.LNil)
		}
		searchModules(s, load)
		return
	}
	loadFile := func(L *lua.LState, path string) int {
		f, err := os.Open(path)
		if err != nil {
			L.Push(lua.LNil)
			L.Push(lua.LString("cannot open " + path))
			return 2
		}
		defer f.Close()
		src, err := WithoutShebang(f)
		if err != nil {
			L.Push(lua.LNil)
			L.Push(lua.LString("cannot read " + path))
			return 2
		}
		return load(src, path)
	}
	L.SetGlobal("loadfile", s.Func(func(L *lua.LState) int { return loadFile(L, L.CheckString(1)) }))
	L.SetGlobal("dofile", s.Through(func(L *lua.LState) int {
		top := L.GetTop()
		if loadFile(L, L.CheckString(1)) == 2 {
			L.Error(L.Get(-1), 1)
		}
		L.Call(0, lua.MultRet)
		return L.GetTop() - top
	}))
	s.replaceSearcher(loadFile)
	s.replaceExit()
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
		name := L.CheckString(1)
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
		L.Push(lua.LString(strings.TrimPrefix(tried.String(), "\n\t"))) // require begins the line
		return 1
	}))
}

// replaceSearcher makes require compile files through Compile.
func (s *State) replaceSearcher(loadFile func(L *lua.LState, path string) int) {
	L := s.L
	loaders, ok := L.GetField(L.GetGlobal("package"), "loaders").(*lua.LTable)
	if !ok {
		return
	}
	loaders.RawSetInt(2, s.Func(func(L *lua.LState) int {
		name := L.CheckString(1)
		path := L.GetField(L.GetGlobal("package"), "path").String()
		file := strings.ReplaceAll(name, ".", string(os.PathSeparator))
		var tried strings.Builder
		for _, pattern := range strings.Split(path, ";") {
			candidate := strings.ReplaceAll(pattern, "?", file)
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
		L.Push(lua.LString(strings.TrimPrefix(tried.String(), "\n\t"))) // require begins the line
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
