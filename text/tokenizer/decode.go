package tokenizer

import (
	"strings"
)

// A decoder makes text of tokens, token by token. It can be handed a token in parts, as a decoder before it that joins
// all tokens into one gives it.
type decoder interface {
	// part takes a part of a token; last says that the token ends with it.
	part(s string, last bool)
	// finish says that no token follows.
	finish()
}

// decoderSpec makes a decoder that hands on what it makes to the next one.
type decoderSpec func(next decoder) decoder

// Decode makes text of ids. special says whether special tokens are left out. Ids that no token has count as nothing.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := t.Stream(skipSpecial)
	var out strings.Builder
	for _, id := range ids {
		out.WriteString(s.Push(id))
	}
	out.WriteString(s.Finish())
	return out.String()
}

// Stream decodes ids one by one, as a model writes them. What Push and Finish return, put together, is what Decode
// makes of all ids, and no return value ends within a character. Text is held back as long as later ids could change
// it: the bytes of an unfinished character, and a run of tokens of single bytes (<0xE4>), which count as text only
// together.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	first       decoder
	out         sink
}

// Stream begins to decode; see Stream.
func (t *Tokenizer) Stream(skipSpecial bool) *Stream {
	s := &Stream{t: t, skipSpecial: skipSpecial}
	s.first = &s.out
	for i := len(t.decoders) - 1; i >= 0; i-- {
		s.first = t.decoders[i](s.first)
	}
	if len(t.decoders) == 0 {
		s.first = &spaced{next: s.first}
	}
	return s
}

// Push takes the next id and returns the text that is certain now, "" if there is none.
func (s *Stream) Push(id int32) string {
	a := s.t.added
	token, known := a.shown[id]
	if !known {
		token, known = s.t.Token(id)
	}
	if known && !(s.skipSpecial && a.special[token]) {
		s.first.part(token, true)
	}
	return s.out.take()
}

// Finish returns the text that was held back. The stream is used up then.
func (s *Stream) Finish() string {
	s.first.finish()
	return s.out.take()
}

// sink is the end of a chain of decoders.
type sink struct{ text strings.Builder }

func (k *sink) part(s string, _ bool) { k.text.WriteString(s) }

func (k *sink) finish() {}

func (k *sink) take() string {
	s := k.text.String()
	if s != "" {
		k.text = strings.Builder{}
	}
	return s
}

// spaced puts spaces between tokens: what happens without a decoder.
type spaced struct {
	next decoder
	any  bool
}

func (d *spaced) part(s string, last bool) {
	if d.any {
		s = " " + s
	}
	d.any = true
	d.next.part(s, last)
}

func (d *spaced) finish() { d.next.finish() }

// whole collects the parts of each token and hands it to f.
type whole struct {
	next  decoder
	parts []string
	f     func(token string)
	end   func()
}

func (d *whole) part(s string, last bool) {
	if !last {
		d.parts = append(d.parts, s)
		return
	}
	if len(d.parts) > 0 {
		s = strings.Join(append(d.parts, s), "")
		d.parts = d.parts[:0]
	}
	d.f(s)
}

func (d *whole) finish() {
	if d.end != nil {
		d.end()
	}
	d.next.finish()
}

// readDecoders reads the decoder of the file; a Sequence becomes its members.
func readDecoders(s *section) ([]decoderSpec, error) {
	var one decoderSpec
	switch kind := s.kind(); kind {
	case "Sequence":
		var out []decoderSpec
		for _, member := range s.list("decoders") {
			more, err := readDecoders(member)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, s.finish()
	case "ByteLevel":
		s.ignore("add_prefix_space", "trim_offsets", "use_regex")
		one = decodeBytes
	case "ByteFallback":
		one = decodeFallback
	case "Fuse":
		one = func(next decoder) decoder { return &fuse{next: next} }
	case "Metaspace":
		m := readMetaspace(s)
		one = func(next decoder) decoder { return decodeMetaspace(m, next) }
	case "WordPiece":
		prefix, tidy := "##", true
		s.value("prefix", &prefix)
		s.value("cleanup", &tidy)
		one = func(next decoder) decoder { return decodeWordPiece(prefix, tidy, next) }
	case "BPEDecoder":
		suffix := "</w>"
		s.value("suffix", &suffix)
		one = func(next decoder) decoder { return decodeSuffix(suffix, next) }
	case "CTC":
		pad, delimiter, tidy := "<pad>", "|", true
		s.value("pad_token", &pad)
		s.value("word_delimiter_token", &delimiter)
		s.value("cleanup", &tidy)
		one = func(next decoder) decoder { return decodeCTC(pad, delimiter, tidy, next) }
	case "Replace":
		p := readPattern(s)
		var by string
		s.need("content", &by)
		one = func(next decoder) decoder { return decodeReplace(p, by, next) }
	case "Strip":
		var char rune
		var start, stop int
		s.char("content", &char)
		s.need("start", &start)
		s.need("stop", &stop)
		one = func(next decoder) decoder { return &strip{next: next, char: char, start: start, stop: stop} }
	default:
		s.fail("does not know the decoder %q", kind)
	}
	return []decoderSpec{one}, s.finish()
}
