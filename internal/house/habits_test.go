package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// habit is a command that has the scripts under .ci at work, in a folder of its own.
func habit(t *testing.T, dir, stdin, name string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	ours := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") }) // of a hook
	cmd.Env = append(ours, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// needs skips a test where a program is missing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("there is no " + p)
		}
	}
}

// TestSubjects: which subjects of commits .ci/subjects lets pass.
func TestSubjects(t *testing.T) {
	needs(t, "bash")
	for subject, want := range map[string]string{
		"Types have at most 60 methods":            "",
		"Wipe the pool when a device closes":       "",
		"The merge of two scopes keeps both":       "",
		"Merge branch 'sig'":                       "",
		strings.Repeat("ü", 72):                    "",
		strings.Repeat("ü", 73):                    "73 characters, at most 72",
		"":                                         "empty",
		"wip":                                      "work in progress",
		"WIP: lanes":                               "work in progress",
		"fixup! Types have at most 60 methods":     "work in progress",
		"Merge branch 'wip-rev'":                   "a merge of work in progress",
		"Merge remote-tracking branch 'origin/wip": "a merge of work in progress",
	} {
		out, err := habit(t, root, subject+"\n", "bash", ".ci/subjects")
		if want == "" {
			require.NoError(t, err, "%s: %s", subject, out)
		} else {
			require.Error(t, err, subject)
			require.Contains(t, out, want)
		}
	}
	out, err := habit(t, root, "Good\nwip\nGood\nwip 2", "bash", ".ci/subjects")
	require.Error(t, err)
	require.Equal(t, 2, strings.Count(out, "\n"), out)
}

// TestTracked: git tracks no program and no large file.
func TestTracked(t *testing.T) {
	needs(t, "git")
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skip("not a clone")
	}
	faults, err := checkTracked(root, strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"))
	require.NoError(t, err)
	noFaults(t, faults)
}

// TestTrackedFaults: each kind of program, and a file that is one byte too long.
func TestTrackedFaults(t *testing.T) {
	dir := t.TempDir()
	files := map[string][]byte{
		"elf": []byte("\x7fELF\x02"), "macho": []byte("\xcf\xfa\xed\xfe\x07"), "fat": []byte("\xca\xfe\xba\xbe"),
		"pe.exe":    []byte("MZ"),
		"long.json": make([]byte, maxTracked+1), "fits.json": make([]byte, maxTracked), "empty": nil, "M": []byte("M"),
	}
	names := []string{"gone"}
	for name, data := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		names = append(names, name)
	}
	faults, err := checkTracked(dir, names)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"elf: a program (ELF)", "macho: a program (Mach-O)", "fat: a program (Mach-O)", "pe.exe: a program (PE)",
		"long.json: 1000001 bytes, at most 1000000",
	}, faults)
}

// TestHooks: what git refuses to commit with core.hooksPath set to .ci/hooks.
func TestHooks(t *testing.T) {
	needs(t, "bash", "git")
	if testing.Short() {
		t.Skip("starts some twenty programs")
	}
	dir := t.TempDir()
	git := func(want string, args ...string) {
		t.Helper()
		out, err := habit(t, dir, "", "git", args...)
		if want == "" {
			require.NoError(t, err, "git %s: %s", args, out)
		} else {
			require.Error(t, err, "git %s: %s", args, out)
			require.Contains(t, out, want)
		}
	}
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	require.NoError(t, os.CopyFS(filepath.Join(dir, ".ci"), os.DirFS(filepath.Join(root, ".ci"))))
	git("", "init", "-q")
	git("", "config", "core.hooksPath", ".ci/hooks")
	git("", "config", "commit.cleanup", "strip")

	write("notes.txt", "one\n")
	git("", "add", "notes.txt")
	git("work in progress", "commit", "-qm", "wip")
	git("73 characters", "commit", "-qm", strings.Repeat("x", 73))
	git("", "commit", "-qm", "# a comment\n\nNotes of one\n\n"+strings.Repeat("The body may be long. ", 20))
	git("", "commit", "-q", "--allow-empty", "-m", "fixup! Notes of one")

	// What is staged counts, not what lies in the folder.
	write("a b.go", "package  p\n")
	git("", "add", "a b.go")
	write("a b.go", "package p\n")
	git("gofmt -w 'a b.go'", "commit", "-qm", "A file that is not formatted")
	write("a b.go", "package {\n")
	git("", "add", "a b.go")
	git("expected 'IDENT'", "commit", "-qm", "A file that does not parse")
}
