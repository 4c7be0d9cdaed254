package edit

import "strings"

// Keys that are control characters.
const (
	ctrlA, ctrlB, ctrlC, ctrlD, ctrlE, ctrlF, ctrlG key = "\x01", "\x02", "\x03", "\x04", "\x05", "\x06", "\x07"
	backspace, tabKey, ctrlJ, ctrlK, ctrlL, enter   key = "\x08", "\t", "\n", "\x0b", "\x0c", "\r"
	ctrlN, ctrlP, ctrlR, ctrlS, ctrlU, ctrlW, ctrlY key = "\x0e", "\x10", "\x12", "\x13", "\x15", "\x17", "\x19"
	ctrlUnderscore, rubout                          key = "\x1f", "\x7f"
)

// press does what a key says.
func (e *Editor) press(k key, pasted string) verdict {
	e.below = nil
	if e.search != nil && e.searching(k) {
		return goOn
	}
	switch k {
	case enter, ctrlJ:
		return e.enter()
	case ctrlC:
		return interrupt
	case ctrlD:
		if e.text() == "" {
			return endOfInput
		}
		e.change(false)
		e.remove()
	case keyPaste:
		e.paste(pasted)
	case tabKey:
		e.complete()
	case ctrlR:
		e.search = &search{at: -1, before: e.copied()}
	case ctrlL:
		e.screen.cursor = 0
		_, _ = e.opt.Out.Write([]byte("\x1b[H\x1b[2J")) // an error is for the next drawing to find
	default:
		if !e.move(k) && !e.cutting(k) && k.isCharacter() {
			e.change(true)
			e.insert(string(k))
			return goOn
		}
	}
	e.typing = false
	return goOn
}

// move moves the cursor, within the entry or the history.
func (e *Editor) move(k key) bool {
	switch k {
	case keyLeft, ctrlB:
		e.left()
	case keyRight, ctrlF:
		e.right()
	case keyHome, ctrlA:
		e.col = 0
	case keyEnd, ctrlE:
		e.col = len(e.lines[e.row])
	case keyUp:
		if !e.vertical(-1) {
			e.older()
		}
	case keyDown:
		if !e.vertical(1) {
			e.newer()
		}
	case ctrlP:
		e.older()
	case ctrlN:
		e.newer()
	case keyWordLeft, metaKey + "b":
		e.col = e.wordLeft()
	case keyWordRight, metaKey + "f":
		e.col = e.wordRight()
	default:
		return false
	}
	return true
}

// cutting takes text out, or puts it back.
func (e *Editor) cutting(k key) bool {
	to := -1
	switch k {
	case rubout, backspace:
		e.change(false)
		e.backspace()
	case keyDelete:
		e.change(false)
		e.remove()
	case ctrlK:
		to = len(e.lines[e.row])
	case ctrlU:
		to = 0
	case ctrlW, metaKey + rubout, metaKey + backspace:
		to = e.wordLeft()
	case metaKey + "d":
		to = e.wordRight()
	case ctrlY:
		e.change(false)
		e.insert(e.killed)
	case metaKey + enter, metaKey + ctrlJ:
		e.newLine()
	case ctrlUnderscore:
		if n := len(e.undo); n > 0 {
			e.buffer, e.undo = e.undo[n-1], e.undo[:n-1]
		}
	default:
		return false
	}
	if to >= 0 {
		e.change(false)
		e.killed = e.cut(to)
	}
	return true
}

// searching is press while the history is searched. A key that is no part of a search ends it, and does then what it
// does.
func (e *Editor) searching(k key) bool {
	s, h := e.search, e.opt.History
	from, step := len(h.entries)-1, -1
	switch {
	case k == ctrlR || k == ctrlS:
		if s.at >= 0 && k == ctrlR {
			from = s.at - 1
		} else if s.at >= 0 {
			from, step = s.at+1, 1
		}
	case k == rubout || k == backspace:
		if c := characters(s.text); len(c) > 0 {
			s.text = strings.Join(c[:len(c)-1], "")
		}
	case k == ctrlG || k == ctrlC:
		e.buffer, e.search = s.before, nil
		return true
	case k.isCharacter():
		s.text += string(k)
		if s.at >= 0 {
			from = s.at
		}
	default:
		e.search = nil
		return false
	}
	if s.text == "" {
		s.at, e.buffer = -1, s.before.copied()
		return true
	}
	found := h.find(s.text, from, step)
	if found < 0 && (k == ctrlR || k == ctrlS) && s.at >= 0 {
		return true // the one that is shown is the last
	}
	if s.at = found; found >= 0 {
		e.change(false)
		e.at = found
		e.set(h.entries[found])
	}
	return true
}
