package tokenizer

import (
	"strings"
	"sync"
)

// splitScripts is the pre-tokenizer UnicodeScripts: it splits where the script changes. As in Python, characters of no
// script at the beginning vanish.
type splitScripts struct{}

func (splitScripts) split(w *worker, p piece, next int) {
	scripts := scriptTable()
	from, last := -1, uint8(0)
	for i, r := range p.s {
		s := scripts[r]
		if s == 0 {
			continue
		}
		if s != last {
			if from >= 0 {
				w.pass(next, p.slice(from, i))
			}
			from = i
		}
		last = s
	}
	if from >= 0 {
		w.pass(next, p.slice(from, len(p.s)))
	}
}

// scriptTable gives the script of each character as a number, 0 for none.
var scriptTable = sync.OnceValue(func() []uint8 {
	table := make([]uint8, 0x110000)
	_, line, _ := strings.Cut(unicodeText, "\nscripts ")
	at := 0
	for _, w := range strings.Fields(line) {
		w, script, _ := strings.Cut(w, "=")
		gap, length, _ := strings.Cut(w, "+")
		at += mustInt(gap, 10)
		for range mustInt(length, 10) {
			table[at] = uint8(mustInt(script, 10))
			at++
		}
	}
	return table
})
