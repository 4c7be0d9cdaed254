package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/internal/jsonfault"
)

// Tokenizer turns text into ids and ids into text. It is safe for use by several goroutines at once.
type Tokenizer struct {
	normalizers []normalizer
	splitters   []splitter
	model       model
	added       *added
	processors  []processor
	truncation  *truncation
	padding     *padding
	decoders    []decoderSpec
	needSpans   bool                       // whether a stage asks where a piece begins in the text
	frames      [2]*frame                  // without and with special tokens; nil where Encode goes the long way
	lengths     map[string]json.RawMessage // the file's truncation and padding: see Fitted
	idle        sync.Pool
}

// Encoding is what a text, or a pair of texts, becomes. All slices have the same length.
type Encoding struct {
	IDs   []int32
	Types []int32 // 0 for the first text and 1 for the second, unless the post-processor says otherwise
	// The bytes of the text that a token stands for; {0, 0} for tokens that were added. Where the text is not UTF-8, the
	// bytes of the text with U+FFFD in those places.
	Spans   []Span
	Special []bool // tokens that were added: [CLS] and its like, and padding
	Mask    []bool // false for padding

	full   bool     // there is more than ids
	text   string   // what the spans count in
	values []string // the tokens as text
}

// Load reads a tokenizer.json.
func Load(path string) (*Tokenizer, error) {
	return openWith(path, nil)
}

// New makes the tokenizer that the text of a tokenizer.json describes. What it does not know in there is an error that
// names it.
func New(raw []byte) (*Tokenizer, error) { return newTokenizer(raw, nil) }

// newTokenizer is New with added tokens that the file does not list.
func newTokenizer(raw []byte, more []AddedToken) (*Tokenizer, error) {
	if !json.Valid(raw) {
		return nil, fmt.Errorf("[tokenizer] tokenizer.json: %w",
			jsonfault.Explain(string(raw), json.Unmarshal(raw, new(any))))
	}
	s := openSection("tokenizer.json", raw)
	t := &Tokenizer{lengths: map[string]json.RawMessage{}}
	t.idle.New = func() any { return &worker{t: t} }
	version := "1.0"
	s.value("version", &version)
	if version != "1.0" {
		s.fail("version %q is unknown", version)
	}
	var tokens []AddedToken
	s.value("added_tokens", &tokens)
	read := func(key string, f func(*section) error) {
		if s.err == nil && s.has(key) {
			if err := f(openSection(key, s.keys[key])); err != nil {
				s.err = err
			}
		}
	}
	var err error
	read("normalizer", func(s *section) error { t.normalizers, err = readNormalizers(s); return err })
	read("pre_tokenizer", func(s *section) error { t.splitters, err = readSplitters(s); return err })
	read("model", func(s *section) error { t.model, err = readModel(s); return err })
	read("post_processor", func(s *section) error { t.processors, err = readProcessors(s); return err })
	read("decoder", func(s *section) error { t.decoders, err = readDecoders(s); return err })
	for _, key := range []string{"truncation", "padding"} {
		if s.has(key) {
			t.lengths[key] = s.keys[key]
		}
	}
	if t.model == nil {
		s.fail("there is no model")
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	t.prepare()
	for _, a := range more {
		if !slices.ContainsFunc(tokens, func(t AddedToken) bool { return t.Content == a.Content }) {
			tokens = append(tokens, a)
		}
	}
	t.added, err = newAdded(tokens, t.model, t.normalizeToken)
	return t, err
}

// Fitted is a tokenizer that cuts and fills texts as the file says under truncation and padding. A tokenizer does
// neither by itself: they are what was asked for when the file was written.
func (t *Tokenizer) Fitted() (*Tokenizer, error) {
	out := &Tokenizer{
		normalizers: t.normalizers, splitters: t.splitters, model: t.model, added: t.added, processors: t.processors,
		decoders: t.decoders, needSpans: t.needSpans, lengths: t.lengths,
	}
	out.idle.New = func() any { return &worker{t: out} }
	var err error
	if raw, ok := t.lengths["truncation"]; ok {
		if out.truncation, err = readTruncation(openSection("truncation", raw)); err != nil {
			return nil, err
		}
	}
	if raw, ok := t.lengths["padding"]; ok {
		if out.padding, err = readPadding(openSection("padding", raw)); err != nil {
			return nil, err
		}
	}
	out.frames = [2]*frame{out.frameOf(false), out.frameOf(true)}
	return out, nil
}

// prepare settles what depends on several parts of the file.
func (t *Tokenizer) prepare() {
	if n := len(t.splitters); n > 0 {
		if m, ok := t.model.(*bpe); ok && t.splitters[n-1] == splitter(byteMap{}) && m.takeBytes() {
			t.splitters = t.splitters[:n-1]
		}
	}
	for _, s := range t.splitters {
		if m, ok := s.(*metaspace); ok && m.prepend == "first" {
			t.needSpans = true
		}
	}
	t.frames = [2]*frame{t.frameOf(false), t.frameOf(true)}
	t.needSpans = t.needSpans && len(t.normalizers)+len(t.splitters) > 1
}

// normalizeToken is what the normalizer makes of the content of an added token.
func (t *Tokenizer) normalizeToken(content string) string {
	w := &worker{t: t}
	p := piece{s: content}
	for _, n := range t.normalizers {
		if p.s != "" {
			p = n.normalize(w, p)
		}
	}
	return p.s
}

func readModel(s *section) (model, error) {
	kind := ""
	s.value("type", &kind)
	if kind == "" { // old files go without
		switch {
		case s.has("merges"):
			kind = "BPE"
		case s.has("unk_id"):
			kind = "Unigram"
		case s.has("max_input_chars_per_word"):
			kind = "WordPiece"
		default:
			kind = "WordLevel"
		}
	}
	switch kind {
	case "BPE":
		return readBPE(s)
	case "Unigram":
		return readUnigram(s)
	case "WordPiece":
		return readWordPiece(s)
	case "WordLevel":
		return readWordLevel(s)
	}
	return nil, fmt.Errorf("[tokenizer] model: does not know the type %q", kind)
}

// Encode gives the ids of a text. special says whether the post-processor's tokens are added, such as a beginning of
// text. What is not UTF-8 in the text counts as U+FFFD. Text that contains the content of an added token, special or
// not, becomes that token.
func (t *Tokenizer) Encode(text string, special bool) ([]int32, error) {
	f := t.frames[0]
	if special {
		f = t.frames[1]
	}
	if f == nil {
		e, err := t.encode([]string{text}, special, false)
		if err != nil {
			return nil, err
		}
		return e.IDs, nil
	}
	w := t.idle.Get().(*worker)
	defer t.idle.Put(w)
	w.track = t.needSpans
	w.ids = append(w.ids[:0], f.before...)
	if err := w.encode(text); err != nil {
		return nil, err
	}
	ids := make([]int32, 0, len(w.ids)+len(f.after))
	return append(append(ids, w.ids...), f.after...), nil
}

// frame is what the post-processor puts around the ids of a text.
type frame struct{ before, after []int32 }

// frameOf asks the post-processor with a text of one token; nil if there is more to do than to put something around it.
func (t *Tokenizer) frameOf(special bool) *frame {
	const marker = -7
	if t.truncation != nil || t.padding != nil {
		return nil
	}
	e, err := t.process([]*Encoding{{IDs: []int32{marker}}}, special)
	if err != nil {
		return nil
	}
	at := slices.Index(e.IDs, marker)
	if at < 0 || slices.Contains(e.IDs[at+1:], marker) {
		return nil
	}
	return &frame{e.IDs[:at], e.IDs[at+1:]}
}

// EncodeFull gives all there is to know about the tokens of a text; see Encode.
func (t *Tokenizer) EncodeFull(text string, special bool) (*Encoding, error) {
	return t.encode([]string{text}, special, true)
}

// EncodePair encodes two texts that belong together, such as a question and a passage.
func (t *Tokenizer) EncodePair(first, second string, special bool) (*Encoding, error) {
	return t.encode([]string{first, second}, special, true)
}

// EncodeBatch encodes texts; a Fitted tokenizer fills all up to one length, if the file asks for padding.
func (t *Tokenizer) EncodeBatch(texts []string, special bool) ([]*Encoding, error) {
	out := make([]*Encoding, len(texts))
	for i, text := range texts {
		var err error
		if out[i], err = t.encode([]string{text}, special, true); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
	}
	if t.padding != nil {
		t.padding.fill(out)
	}
	return out, nil
}

// encode encodes one or two texts, with spans or without.
func (t *Tokenizer) encode(texts []string, special, spans bool) (*Encoding, error) {
	w := t.idle.Get().(*worker)
	defer t.idle.Put(w)
	w.track = spans || t.needSpans
	parts := make([]*Encoding, len(texts))
	for i, text := range texts {
		w.ids, w.spans, w.values = nil, nil, nil
		if err := w.encode(text); err != nil {
			return nil, err
		}
		parts[i] = &Encoding{IDs: w.ids, Spans: w.spans, values: w.values}
		if spans {
			parts[i].fill(int32(i))
			parts[i].text = valid(text)
		} else {
			parts[i].Spans, parts[i].values = nil, nil
		}
	}
	w.ids, w.spans, w.values = nil, nil, nil
	if err := t.truncate(parts, special); err != nil {
		return nil, err
	}
	e, err := t.process(parts, special)
	if err == nil && t.padding != nil {
		t.padding.fill([]*Encoding{e})
	}
	return e, err
}

// fill gives an encoding the slices that are the same for all its tokens.
func (e *Encoding) fill(kind int32) {
	n := len(e.IDs)
	e.full = true
	e.Types, e.Special, e.Mask = make([]int32, n), make([]bool, n), make([]bool, n)
	for i := range n {
		e.Types[i], e.Mask[i] = kind, true
	}
}

// ID is the number of a token, of the added ones or the model's.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added.ids[token]; ok {
		return id, true
	}
	return t.model.id(token)
}

// Token is the token of a number, as the vocabulary writes it: "Ġthe", "▁the" or "##ing".
func (t *Tokenizer) Token(id int32) (string, bool) {
	if a, ok := t.added.byID[id]; ok {
		return a.Content, true
	}
	return t.model.name(id)
}

// IsSpecial reports whether a number is that of a special token, which decoding can leave out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	a, ok := t.added.byID[id]
	return ok && t.added.special[a.Content]
}

// Added gives the added tokens, in the order of their ids.
func (t *Tokenizer) Added() []AddedToken {
	out := make([]AddedToken, 0, len(t.added.byID))
	for _, id := range slices.Sorted(maps.Keys(t.added.byID)) {
		out = append(out, t.added.byID[id])
	}
	return out
}

// Size is one more than the highest id.
func (t *Tokenizer) Size() int {
	high := int32(-1)
	t.model.each(func(_ string, id int32) { high = max(high, id) })
	for id := range t.added.byID {
		high = max(high, id)
	}
	return int(high) + 1
}

// Vocabulary maps every token, the added ones too, to its number.
func (t *Tokenizer) Vocabulary() map[string]int32 {
	out := make(map[string]int32, t.model.size())
	t.model.each(func(token string, id int32) { out[token] = id })
	maps.Copy(out, t.added.ids)
	return out
}
