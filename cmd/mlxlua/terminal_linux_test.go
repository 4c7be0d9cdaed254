package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asProgram is the variable that makes the test binary be the program.
const asProgram = "MLXLUA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if name := os.Getenv(asCheck); name != "" {
		os.Exit(checkInTest(name))
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(run([]string{"mlxlua"}, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// pseudoTerminal opens a pseudo-terminal of 24 lines of 80 columns: the side of the keyboard and screen, and the
// program's.
func pseudoTerminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return screen, program
}

// On a terminal the REPL edits entries, completes names, keeps a history, paints, runs a start-up file, and Ctrl-C
// stops what runs and nothing else.
func TestTerminal(t *testing.T) {
	screen, tty := pseudoTerminal(t)
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(home+"/mlxlua", 0o700))
	require.NoError(t, os.WriteFile(home+"/mlxlua/init.lua", []byte("started = 'from init.lua'"), 0o600))
	t.Setenv("NO_COLOR", "")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "LUA_INIT=", "HOME="+home, "XDG_CONFIG_HOME="+home, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, tty.Close())
	chunks := make(chan []byte)
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 4096)
			n, err := screen.Read(b)
			if err != nil {
				return // EIO: the program has ended
			}
			chunks <- b[:n]
		}
	}()
	limit := time.After(30 * time.Second)
	var seen bytes.Buffer
	wait := func(text string) {
		t.Helper()
		for {
			if _, after, ok := bytes.Cut(seen.Bytes(), []byte(text)); ok {
				rest := bytes.Clone(after)
				seen.Reset()
				seen.Write(rest)
				return
			}
			select {
			case b, ok := <-chunks:
				if !ok {
					t.Fatalf("the program ended before it printed %q: %q", text, seen.String())
				}
				seen.Write(b)
			case <-limit:
				_ = cmd.Process.Kill()
				t.Fatalf("%q was not printed: %q", text, seen.String())
			}
		}
	}
	keys := func(text string) {
		t.Helper()
		_, err := screen.WriteString(text)
		require.NoError(t, err)
	}
	// answer waits for a text and then for the prompt: keys before it may be lost, as the terminal changes its mode.
	answer := func(text string) {
		t.Helper()
		wait(text)
		wait("> ")
	}
	answer("mlxlua ")
	keys("started\r")
	answer("from init.lua\r\n")
	keys("6 * 7\r")
	answer("42\r\n")
	// Home as multiplexers send it, then across characters that take two columns: what was typed is what counts.
	keys("#'語日本'\x1b[1~1 + \x1b[4~\x1b[D\x1b[D\x1b[D漢\x7f\x1b[D字\r")
	answer("13\r\n")
	keys("for i = 1, 1 do\rprint(i + 100) end\r")
	answer("101\r\n")
	keys("mx.softm\t({1})\r") // completed to softmax, which wants an array
	answer("\x1b[31mstdin:1: [softmax] a is a table, want an array")
	keys("print('go' .. 'ing') while true do end\r")
	wait("going\r\n")
	keys("\x03")
	answer("interrupted: Ctrl-C")
	keys("half an inp\x03")
	answer("^C")
	keys("mx.arange(3)\r")
	answer("array([0, 1, 2], dtype=int32)")
	keys("\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\r") // four entries up, the last of two lines: the loop
	answer("101\r\n")
	keys("\x126 *\r") // searched for
	answer("42\r\n")
	keys("\x1b[200~x = {\r  5}\r\x1b[201~\rx[1]\r") // pasted
	answer("5\r\n")
	keys("\x04")
	for open := true; open; {
		select {
		case _, open = <-chunks:
		case <-limit:
			_ = cmd.Process.Kill()
			t.Fatal("the program did not end")
		}
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	require.False(t, errors.As(err, &exit), "%v", err)
	history, err := os.ReadFile(home + "/mlxlua/history")
	require.NoError(t, err)
	require.Contains(t, string(history), "\n6 * 7\n")
	require.Contains(t, string(history), "\nfor i = 1, 1 do\n\tprint(i + 100) end\n")
	require.NotContains(t, string(history), "half an inp")
}
