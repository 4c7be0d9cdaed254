package lua51

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// What Lua 5.1 says is the truth of the tests that use this file.
var (
	oracle = flag.String("lua", "", "a program of Lua 5.1, such as lua5.1: ask it, instead of what it said before")
	count  = flag.Int("programs", 0, "with -lua: how many random programs each test makes, instead of those of testdata")
	first  = flag.Uint64("first", 0, "with -programs: the seed of the first one")
	update = flag.Bool("update", false, "with -lua: write what it says to testdata")
)

// driver runs a program, and gives what it prints and how it fails. Here and there it is the same.
const driver = `
local function outcome(text)
  local lines = {}
  local function note(...)
    local line = {}
    for i = 1, select("#", ...) do
      line[i] = tostring((select(i, ...))):gsub("\n\t[^\n]*\n\tdriver:.*", "") -- of a traceback, what is below
    end
    lines[#lines + 1] = table.concat(line, " ")
  end
  local kept = print
  print = note
  local f, message = loadstring(text, "=p")
  if f then
    local ok, e = pcall(f)
    if not ok then note("failed:", e) end
  else
    note("no program:", message)
  end
  print = kept
  return table.concat(lines, "\n")
end
`

// ours runs a program in a state of its own.
func ours(t *testing.T, program string) string {
	t.Helper()
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.L.Close()
	proto, err := s.Compile(context.Background(), strings.NewReader(driver+"return outcome(...)"), "driver")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background()) // hooks need one
	defer cancel()
	SetContext(s.L, ctx)
	out, err := s.Protect(nil, s.L.NewFunctionFromProto(proto), lua.LString(program))
	require.NoError(t, err, program)
	require.Len(t, out, 1)
	require.Equal(t, 0, s.L.GetTop(), "values are left on the stack of\n%s", program)
	return out[0].String()
}

// theirs asks Lua 5.1, one process for all programs.
func theirs(t *testing.T, programs []string) []string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "local outcome = loadstring(%s, '=driver')()\n", luaQuote(driver+"return outcome"))
	for _, p := range programs {
		fmt.Fprintf(&text, "io.write(outcome(%s), '\\0')\n", luaQuote(p))
	}
	path := filepath.Join(t.TempDir(), "programs.lua")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	ask := exec.Command(*oracle, path)
	var errors strings.Builder
	ask.Stderr = &errors
	out, err := ask.Output()
	require.NoError(t, err, errors.String())
	parts := strings.Split(string(out), "\x00")
	require.Len(t, parts, len(programs)+1)
	return parts[:len(programs)]
}

// luaQuote is a text as a literal of Lua.
func luaQuote(text string) string {
	return `"` + strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`, "\r", `\r`, "\x00", `\0`).Replace(text) + `"`
}

// same compares what programs print, with the same text before each, with what Lua 5.1 has printed, which is in
// testdata.
func same(t *testing.T, name, before string, programs []string) {
	path := filepath.Join("testdata", name+".txt")
	var said []string
	if *oracle != "" {
		var whole []string
		for _, p := range programs {
			whole = append(whole, before+p)
		}
		said = theirs(t, whole)
	} else {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")[2:]
		require.Len(t, lines, 2*len(programs), "ask Lua 5.1 with -lua lua5.1 -update")
		for i := 0; i < len(lines); i += 2 {
			program, err := strconv.Unquote(lines[i])
			require.NoError(t, err)
			require.Equal(t, programs[i/2], program, "ask Lua 5.1 with -lua lua5.1 -update")
			out, err := strconv.Unquote(lines[i+1])
			require.NoError(t, err)
			said = append(said, out)
		}
	}
	golden := fmt.Sprintf("# Programs, and what lua5.1 prints, made by:\n"+
		"# go test ./luabind/lua51 -run %s -lua lua5.1 -update\n", t.Name())
	for i, p := range programs {
		golden += strconv.Quote(p) + "\n" + strconv.Quote(said[i]) + "\n"
		if got := ours(t, before+p); got != said[i] {
			t.Errorf("%s\n--- Lua 5.1:\n%s\n--- here:\n%s", p, said[i], got)
		}
	}
	if *oracle != "" && *update {
		require.NoError(t, os.WriteFile(path, []byte(golden), 0o600))
	}
}

// agree compares what a program does for each of so many seeds with what Lua 5.1 has said, which is in testdata by a
// hash of the program and of the outcome.
func agree(t *testing.T, name string, seeds int, program func(seed uint64) string) {
	path := filepath.Join("testdata", name+".txt")
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:5])
	}
	if *oracle == "" {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")[2:]
		require.Len(t, lines, seeds)
		for seed, line := range lines {
			p := program(uint64(seed))
			got := ours(t, p)
			require.Equal(t, line, hash(p)+" "+hash(got), "seed %d does not what Lua 5.1 did: ask it with "+
				"-lua lua5.1 -run %s; where the programs were changed, with -update too\n%s\n%s", seed, t.Name(), p, got)
		}
		return
	}
	if *count > 0 {
		seeds = *count
	}
	golden := fmt.Sprintf("# Hashes of programs and of what lua5.1 prints, made by:\n"+
		"# go test ./luabind/lua51 -run %s -lua lua5.1 -update\n", t.Name())
	const atOnce = 200
	different := 0
	for begin := 0; begin < seeds; begin += atOnce {
		var programs []string
		for i := begin; i < min(begin+atOnce, seeds); i++ {
			programs = append(programs, program(*first+uint64(i)))
		}
		for i, want := range theirs(t, programs) {
			golden += hash(programs[i]) + " " + hash(want) + "\n"
			if got := ours(t, programs[i]); got != want {
				if different++; different < 4 {
					t.Errorf("seed %d\n%s\n--- Lua 5.1:\n%s\n--- here:\n%s", *first+uint64(begin+i), programs[i], want, got)
				}
			}
		}
	}
	t.Logf("%d programs, %d differ", seeds, different)
	if *update && different == 0 && *count == 0 {
		require.NoError(t, os.WriteFile(path, []byte(golden), 0o600))
	}
}
