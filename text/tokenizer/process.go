package tokenizer

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// A processor is one post-processor: it takes the encodings of one or two texts, changes them and puts others between.
type processor interface {
	process(parts []*Encoding, special bool) ([]*Encoding, error)
	// adds is how many tokens it adds.
	adds(pair bool) int
}

// readProcessors reads the post_processor of the file; a Sequence becomes its members.
func readProcessors(s *section) ([]processor, error) {
	var out []processor
	switch kind := s.kind(); kind {
	case "Sequence":
		for _, member := range s.list("processors") {
			more, err := readProcessors(member)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	case "ByteLevel":
		t := &trimSpaces{on: true, prefix: true}
		s.value("trim_offsets", &t.on)
		s.value("add_prefix_space", &t.prefix)
		s.ignore("use_regex")
		out = []processor{t}
	case "BertProcessing":
		out = []processor{&framed{sep: readNamed(s, "sep"), cls: readNamed(s, "cls")}}
	case "RobertaProcessing":
		t := &trimSpaces{on: true, prefix: true}
		f := &framed{sep: readNamed(s, "sep"), cls: readNamed(s, "cls"), roberta: true}
		s.value("trim_offsets", &t.on)
		s.value("add_prefix_space", &t.prefix)
		out = []processor{t, f}
	case "TemplateProcessing":
		out = []processor{readTemplate(s)}
	default:
		s.fail("does not know the post-processor %q", kind)
	}
	return out, s.finish()
}

// process runs the post-processors and puts the parts together.
func (t *Tokenizer) process(parts []*Encoding, special bool) (*Encoding, error) {
	for _, p := range t.processors {
		var err error
		if parts, err = p.process(parts, special); err != nil {
			return nil, err
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return join(parts...), nil
}

// extra is an encoding of tokens that belong to no text. spans says whether the others have more than ids.
func extra(ids []int32, kind int32, spans bool) *Encoding {
	e := &Encoding{IDs: ids}
	if spans {
		e.fill(kind)
		e.Spans, e.values = make([]Span, len(ids)), make([]string, len(ids))
		for i := range e.Special {
			e.Special[i] = true
		}
	}
	return e
}

// setTypes gives all tokens one type.
func (e *Encoding) setTypes(kind int32) {
	for i := range e.Types {
		e.Types[i] = kind
	}
}

// readNamed reads ["[SEP]", 102].
func readNamed(s *section, key string) int32 {
	var raw []json.RawMessage
	var token string
	var id int32
	s.need(key, &raw)
	if len(raw) != 2 || json.Unmarshal(raw[0], &token) != nil || json.Unmarshal(raw[1], &id) != nil {
		s.fail("%s is not a token and its id", key)
	}
	return id
}

// framed is BertProcessing ([CLS] a [SEP] b [SEP]) and RobertaProcessing (<s> a </s></s> b </s>).
type framed struct {
	sep, cls int32
	roberta  bool
}

func (f *framed) adds(pair bool) int {
	switch {
	case !pair:
		return 2
	case f.roberta:
		return 4
	}
	return 3
}

func (f *framed) process(parts []*Encoding, special bool) ([]*Encoding, error) {
	var out []*Encoding
	for i, e := range parts {
		kind := int32(1)
		if f.roberta || i == 0 {
			kind = 0
		}
		if f.roberta || special {
			e.setTypes(kind)
		}
		if !special {
			out = append(out, e)
			continue
		}
		before := []int32{}
		switch {
		case i == 0:
			before = []int32{f.cls}
		case f.roberta:
			before = []int32{f.sep}
		}
		out = append(out, extra(before, kind, e.full), e, extra([]int32{f.sep}, kind, e.full))
	}
	return out, nil
}

// trimSpaces takes the white space at the ends of tokens out of their spans.
type trimSpaces struct {
	on     bool
	prefix bool // a space was put before the text
}

func (*trimSpaces) adds(bool) int { return 0 }

func (t *trimSpaces) process(parts []*Encoding, _ bool) ([]*Encoding, error) {
	for _, e := range parts {
		for i := range e.Spans {
			if t.on {
				t.trim(e.text, &e.Spans[i], e.values[i], i == 0)
			}
		}
	}
	return parts, nil
}

// trim counts the white space at the ends of a token, and takes as many characters from the span.
func (t *trimSpaces) trim(text string, span *Span, value string, first bool) {
	c := classes()
	is := func(r rune) bool { return r == 'Ġ' || c.of(r)&space != 0 }
	left, right := 0, 0
	for _, r := range value {
		if !is(r) {
			break
		}
		left++
	}
	for rest := value; rest != ""; right++ {
		r, n := utf8.DecodeLastRuneInString(rest)
		if !is(r) {
			break
		}
		rest = rest[:len(rest)-n]
	}
	if left == 1 && t.prefix && (first || span.From == 0) {
		left = 0
	}
	for ; left > 0 && span.From < span.To; left-- {
		_, n := utf8.DecodeRuneInString(text[span.From:])
		span.From += n
	}
	if utf8.RuneCountInString(text[:span.To]) < right { // as in Python, then nothing is taken
		return
	}
	for ; right > 0 && span.To > span.From; right-- {
		_, n := utf8.DecodeLastRuneInString(text[:span.To])
		span.To -= n
	}
}

// template is TemplateProcessing.
type template struct {
	single, pair []templatePiece
}

// templatePiece is a text (0 or 1), or tokens.
type templatePiece struct {
	text int
	ids  []int32 // of added tokens; nil for a text
	kind int32
}

func readTemplate(s *section) *template {
	var tokens map[string]struct {
		IDs []int32 `json:"ids"`
	}
	s.need("special_tokens", &tokens)
	pieces := func(key string) (out []templatePiece) {
		var raw []map[string]struct {
			ID     string `json:"id"`
			TypeID int32  `json:"type_id"`
		}
		s.need(key, &raw)
		for i, r := range raw {
			for what, at := range r {
				p := templatePiece{kind: at.TypeID}
				switch tok, known := tokens[at.ID]; {
				case what == "Sequence" && at.ID == "A":
				case what == "Sequence" && at.ID == "B":
					p.text = 1
				case what == "SpecialToken" && known:
					p.ids = append([]int32{}, tok.IDs...)
				default:
					s.fail("%s[%d]: does not know the %s %q", key, i, what, at.ID)
				}
				out = append(out, p)
			}
		}
		return out
	}
	return &template{single: pieces("single"), pair: pieces("pair")}
}

func (t *template) adds(pair bool) int {
	n := 0
	for _, p := range t.pieces(pair) {
		n += len(p.ids)
	}
	return n
}

func (t *template) pieces(pair bool) []templatePiece {
	if pair {
		return t.pair
	}
	return t.single
}

func (t *template) process(parts []*Encoding, special bool) ([]*Encoding, error) {
	if len(parts) > 2 {
		return nil, fmt.Errorf("[tokenizer] post_processor: a template cannot follow what has added tokens already")
	}
	spans := parts[0].full
	var out []*Encoding
	for _, p := range t.pieces(len(parts) == 2) {
		switch {
		case p.ids != nil && special:
			out = append(out, extra(p.ids, p.kind, spans))
		case p.ids == nil && p.text < len(parts):
			e := *parts[p.text]
			e.Types = append([]int32(nil), e.Types...)
			e.setTypes(p.kind)
			out = append(out, &e)
		case p.ids == nil:
			return nil, fmt.Errorf("[tokenizer] post_processor: the template of a single text uses a second one")
		}
	}
	if out == nil {
		out = []*Encoding{extra(nil, 0, spans)}
	}
	return out, nil
}
