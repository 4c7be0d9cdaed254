package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokenDecoder is a decoder that turns each whole token into another one.
func tokenDecoder(next decoder, f func(token string) string) decoder {
	return &whole{next: next, f: func(token string) { next.part(f(token), true) }}
}

// byteText joins the bytes of all tokens into one, and gives out whole characters.
type byteText struct {
	next decoder
	rest []byte // the beginning of a character
}

// decodeBytes is the decoder ByteLevel.
func decodeBytes(next decoder) decoder {
	b := &byteText{next: next}
	return &whole{next: b, f: b.token}
}

func (d *byteText) token(token string) {
	b, ok := unmapBytes(token)
	if !ok {
		b = []byte(token)
	}
	d.rest = append(d.rest, b...)
	cut := len(d.rest)
	for i := max(0, cut-utf8.UTFMax); i < cut; i++ {
		if utf8.RuneStart(d.rest[i]) && partial(string(d.rest[i:])) == cut-i && !utf8.FullRune(d.rest[i:]) {
			cut = i
		}
	}
	if cut > 0 {
		d.next.part(valid(string(d.rest[:cut])), false)
		d.rest = append(d.rest[:0], d.rest[cut:]...)
	}
}

func (d *byteText) part(string, bool) {}

func (d *byteText) finish() {
	d.next.part(valid(string(d.rest)), true)
	d.next.finish()
}

// fuse joins all tokens into one.
type fuse struct{ next decoder }

func (d *fuse) part(s string, _ bool) { d.next.part(s, false) }

func (d *fuse) finish() {
	d.next.part("", true)
	d.next.finish()
}

// decodeFallback turns runs of <0x41> into text: U+FFFD for each if a run is not UTF-8.
func decodeFallback(next decoder) decoder {
	var run []byte
	flush := func() {
		switch {
		case len(run) == 0:
		case utf8.Valid(run):
			next.part(string(run), true)
		default:
			for range run {
				next.part("\uFFFD", true)
			}
		}
		run = run[:0]
	}
	return &whole{next: next, end: flush, f: func(token string) {
		if len(token) == 6 && strings.HasPrefix(token, "<0x") && token[5] == '>' {
			if b, err := strconv.ParseUint(strings.TrimPrefix(token[3:5], "+"), 16, 8); err == nil {
				run = append(run, byte(b))
				return
			}
		}
		flush()
		next.part(token, true)
	}}
}

// decodeMetaspace turns the mark of a space into a space, but for those of the first token if the pre-tokenizer adds
// one.
func decodeMetaspace(m *metaspace, next decoder) decoder {
	first := true
	return tokenDecoder(next, func(token string) string {
		by := " "
		if first && m.prepend != "never" {
			by = ""
		}
		first = false
		return strings.ReplaceAll(token, m.text, by)
	})
}

// decodeWordPiece puts a space before each token that does not begin with the prefix.
func decodeWordPiece(prefix string, tidy bool, next decoder) decoder {
	first := true
	return tokenDecoder(next, func(token string) string {
		if !first {
			rest, inside := strings.CutPrefix(token, prefix)
			if !inside {
				rest = " " + rest
			}
			token = rest
		}
		first = false
		if tidy {
			token = tidyEnglish(token)
		}
		return token
	})
}

// tidyEnglish takes the spaces out that WordPiece puts before punctuation.
func tidyEnglish(s string) string {
	for _, pair := range [][2]string{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	} {
		s = strings.ReplaceAll(s, pair[0], pair[1])
	}
	return s
}

// decodeSuffix is BPEDecoder: the suffix of a word becomes a space, at the very end nothing.
func decodeSuffix(suffix string, next decoder) decoder {
	held, holds := "", false
	release := func(by string) {
		if holds {
			next.part(strings.ReplaceAll(held, suffix, by), true)
		}
		holds = false
	}
	return &whole{next: next, end: func() { release("") }, f: func(token string) {
		release(" ")
		if held, holds = token, true; suffix != "" && !strings.Contains(token, suffix) {
			release("")
		}
	}}
}

// decodeCTC drops repeated tokens and the pad token.
func decodeCTC(pad, delimiter string, tidy bool, next decoder) decoder {
	last, any := "", false
	return &whole{next: next, f: func(token string) {
		if any && token == last {
			return
		}
		last, any = token, true
		token = strings.ReplaceAll(token, pad, "")
		if tidy {
			token = strings.ReplaceAll(tidyEnglish(token), delimiter, " ")
		}
		if token != "" {
			next.part(token, true)
		}
	}}
}

// replaceText writes by for every text old. It holds back what could be the beginning of old.
type replaceText struct {
	next    decoder
	old, by string
	held    string
}

func (d *replaceText) part(s string, last bool) {
	s = d.held + s
	d.held = ""
	end := 0 // of the last match
	for i := strings.Index(s, d.old); i >= 0; i = strings.Index(s[end:], d.old) {
		end += i + len(d.old)
	}
	if !last {
		for from := max(end, len(s)-len(d.old)+1); from < len(s); from++ {
			if strings.HasPrefix(d.old, s[from:]) {
				s, d.held = s[:from], s[from:]
				break
			}
		}
	}
	if s != "" || last {
		d.next.part(strings.ReplaceAll(s, d.old, d.by), last)
	}
}

func (d *replaceText) finish() { d.next.finish() }

// decodeReplace writes by for every match of a pattern.
func decodeReplace(p *pattern, by string, next decoder) decoder {
	if p.literal != "" {
		return &replaceText{next: next, old: p.literal, by: by}
	}
	return tokenDecoder(next, func(token string) string {
		var out strings.Builder
		err := p.each(token, func(from, to int, match bool) {
			if match {
				out.WriteString(by)
			} else {
				out.WriteString(token[from:to])
			}
		})
		if err != nil {
			return token
		}
		return out.String()
	})
}

// strip cuts up to start characters off the beginning of each token, and up to stop off its end, as long as they are
// char.
type strip struct {
	next        decoder
	char        rune
	start, stop int
	cut         int  // characters cut off the beginning of this token
	begun       bool // something else has come
	held        int  // characters that wait: they may stand at the end
}

func (d *strip) part(s string, last bool) {
	mark := string(d.char)
	for !d.begun && d.cut < d.start && strings.HasPrefix(s, mark) {
		s = s[len(mark):]
		d.cut++
	}
	d.begun = d.begun || s != "" || d.cut == d.start
	s = strings.Repeat(mark, d.held) + s
	d.held = 0
	for d.held < d.stop && strings.HasSuffix(s, mark) {
		s = s[:len(s)-len(mark)]
		d.held++
	}
	if last {
		d.cut, d.begun, d.held = 0, false, 0
	}
	if s != "" || last {
		d.next.part(s, last)
	}
}

func (d *strip) finish() { d.next.finish() }
