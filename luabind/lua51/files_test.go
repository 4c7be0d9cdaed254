package lua51

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// What a script has written is in the file when its handle is collected, and when the state ends.
func TestFilesAreWritten(t *testing.T) {
	folder := t.TempDir()
	lost, kept := filepath.Join(folder, "lost"), filepath.Join(folder, "kept")
	s := New(Options{Libraries: true})
	s.L.SetGlobal("lost", lua.LString(lost))
	s.L.SetGlobal("kept", lua.LString(kept))
	_, err := run(s, `io.open(lost, "w"):write("a") f = io.open(kept, "w") f:write("b")`, "files")
	require.NoError(t, err)
	content := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	s.L.SetTop(0)
	require.Eventually(t, func() bool {
		_, err := run(s, `local function fill(n) if n > 0 then return 1 + fill(n - 1) end return 0 end fill(200)`, "fill")
		require.NoError(t, err)
		runtime.GC()
		return content(lost) == "a"
	}, 20*time.Second, 10*time.Millisecond)
	require.Empty(t, content(kept))
	Close(s)
	require.Equal(t, "b", content(kept))
}

// io.stdout and print write to the same place, in the order of the script.
func TestOutput(t *testing.T) {
	var out strings.Builder
	s := New(Options{Libraries: true, Stdout: &out})
	defer Close(s)
	_, err := run(s, `io.write("a", 1) print("b") io.stdout:setvbuf("full") io.stdout:write("c\n") print(1/3)
		io.stdout:close() io.write("d")`, "output")
	require.NoError(t, err)
	require.Equal(t, "a1b\nc\n0.33333333333333\nd", out.String())
}

// What waits for other processes ends with the call.
func TestWaitingEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a shell of Unix")
	}
	for _, src := range []string{
		`io.popen("exec sleep 20"):read()`, `io.popen("exec sleep 20"):read("*a")`, `io.popen("exec sleep 20"):read("*n")`,
		`for l in io.popen("exec sleep 20"):lines() do end`, `os.execute("exec sleep 20")`,
		`io.popen("exec sleep 20", "w"):close()`,
		`table.insert({}, -1e15, 1)`, `table.concat(setmetatable({}, {}), "", 1, 0) io.open("/dev/zero"):read("*n")
			while true do end`,
	} {
		s := New(Options{Libraries: true})
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		SetContext(s.L, ctx)
		_, err := run(s, src, "waiting")
		require.ErrorContains(t, err, "deadline exceeded", src)
		cancel()
		Close(s)
	}
}

// What is read of a file counts as it is read.
func TestReadingIsBounded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no /dev/zero")
	}
	s := New(Options{Libraries: true, Limits: Limits{Memory: 4 << 20}})
	defer Close(s)
	for _, src := range []string{`zeros:read("*a")`, `zeros:read(1e9)`, `zeros:read()`, `zeros:lines()()`} {
		ctx, end := s.Metered(context.Background())
		SetContext(s.L, ctx)
		_, err := run(s, `local zeros = io.open("/dev/zero") `+src, "reading")
		end()
		require.ErrorContains(t, err, "memory is full", src)
	}
}
