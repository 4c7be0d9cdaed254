package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asProgram is the variable that makes the test binary be the program.
const asProgram = "MLXLUA_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run([]string{"mlxlua"}, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// terminal opens a pseudo-terminal of 24 lines of 80 columns: the side of the keyboard and screen, and the program's.
func terminal(t *testing.T) (screen, program *os.File) {
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

// On a terminal the REPL edits lines, completes names, keeps a history, and Ctrl-C stops what runs and nothing else.
func TestTerminal(t *testing.T) {
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprintf("answers %v", answers), func(t *testing.T) { useTerminal(t, answers) })
	}
}

// useTerminal plays a terminal and who sits at it. A terminal answers when it is asked where the cursor is; the REPL
// serves others too.
func useTerminal(t *testing.T, answers bool) {
	screen, tty := terminal(t)
	home := t.TempDir()
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
			if answers && bytes.Contains(b[:n], []byte("\x1b[6n")) {
				_, _ = screen.WriteString("\x1b[24;1R")
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
	keys("6 * 7\r")
	answer("42\r\n")
	// Home as multiplexers send it, then across characters that take two columns: what was typed is what counts.
	keys("#'語日本'\x1b[1~1 + \x1b[4~\x1b[D\x1b[D\x1b[D漢\x7f\x1b[D字\r")
	answer("13\r\n")
	keys("for i = 1, 1 do\r")
	answer("\n")
	keys("print(i + 100) end\r")
	answer("101\r\n")
	keys("mx.softm\t({1})\r") // completed to softmax, which wants an array
	answer("[softmax] a is a table, want an array")
	keys("print('go' .. 'ing') while true do end\r")
	wait("going\r\n")
	keys("\x03")
	answer("interrupted: Ctrl-C")
	keys("half an inp\x03")
	answer("^C")
	keys("mx.arange(3)\r")
	answer("array([0, 1, 2], dtype=int32)")
	keys("\x1b[A\x1b[A\x1b[A\x1b[A\r") // four inputs up: the loop over one line
	answer("101\r\n")
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
	lines := strings.Split(strings.TrimSpace(string(history)), "\n")
	require.Equal(t, "6 * 7", lines[0])
	require.Contains(t, lines, "for i = 1, 1 do print(i + 100) end")
	require.NotContains(t, string(history), "half an inp")
}
