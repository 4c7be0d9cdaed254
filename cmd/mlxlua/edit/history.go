package edit

import (
	"os"
	"path/filepath"
	"strings"
)

// mostEntries is how many entries a history keeps in its file.
const mostEntries = 5000

// History is the entries of this session and of earlier ones, oldest first. In its file the lines of an entry but the
// first begin with a tab.
type History struct {
	file    string
	entries []string
}

// OpenHistory reads a history's file; the history of no file lasts as long as the program. A file that cannot be read
// is an empty one: a history is no reason not to begin.
func OpenHistory(file string) *History {
	h := &History{file: file}
	text, err := os.ReadFile(file)
	if file == "" || err != nil {
		return h
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if more, ok := strings.CutPrefix(line, "\t"); ok && len(h.entries) > 0 {
			h.entries[len(h.entries)-1] += "\n" + more
		} else if line != "" {
			h.entries = append(h.entries, line)
		}
	}
	if len(h.entries) > 2*mostEntries {
		h.entries = h.entries[len(h.entries)-mostEntries:]
		h.rewrite()
	}
	return h
}

// Add puts an entry at the end, unless it is there, and into the file. A file that cannot be written is no error.
func (h *History) Add(entry string) {
	entry = strings.TrimSpace(entry)
	if entry == "" || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return
	}
	h.entries = append(h.entries, entry)
	if h.file == "" {
		return
	}
	f, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(inFile(entry))
	_ = f.Close()
}

// inFile is an entry as the file has it.
func inFile(entry string) string { return strings.ReplaceAll(entry, "\n", "\n\t") + "\n" }

// rewrite makes the file hold the entries that there are.
func (h *History) rewrite() {
	f, err := os.CreateTemp(filepath.Dir(h.file), ".history.*")
	if err != nil {
		return
	}
	for _, e := range h.entries {
		_, err = f.WriteString(inFile(e))
	}
	if closing := f.Close(); err != nil || closing != nil || os.Rename(f.Name(), h.file) != nil {
		_ = os.Remove(f.Name())
	}
}

// find is the place of the entry with a text in it that is next from a place on, by steps of +1 or -1; -1: there is
// none.
func (h *History) find(text string, from, step int) int {
	for i := from; i >= 0 && i < len(h.entries); i += step {
		if strings.Contains(h.entries[i], text) {
			return i
		}
	}
	return -1
}
