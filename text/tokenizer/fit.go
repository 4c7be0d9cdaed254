package tokenizer

import (
	"encoding/json"
	"fmt"
)

// truncation cuts encodings that are too long, and drops what it cuts off: in Python that is e.overflowing.
type truncation struct {
	length   int
	left     bool // cut at the beginning
	strategy string
}

func readTruncation(s *section) (*truncation, error) {
	t := &truncation{strategy: "LongestFirst"}
	direction := "Right"
	s.need("max_length", &t.length)
	s.value("strategy", &t.strategy)
	s.value("direction", &direction)
	stride := 0
	s.value("stride", &stride)
	t.left = direction == "Left"
	switch {
	case direction != "Left" && direction != "Right":
		s.fail("does not know the direction %q", direction)
	case t.strategy != "LongestFirst" && t.strategy != "OnlyFirst" && t.strategy != "OnlySecond":
		s.fail("does not know the strategy %q", t.strategy)
	case stride != 0: // it matters to who reads all of a text piece by piece
		s.fail("stride is %d: the rests of a text, which would overlap by it, are not given", stride)
	case t.length < 0:
		s.fail("max_length is %d", t.length)
	}
	return t, s.finish()
}

// truncate cuts the encodings of one or two texts so that they fit with the tokens that the post-processor adds.
func (t *Tokenizer) truncate(parts []*Encoding, special bool) error {
	cut := t.truncation
	if cut == nil {
		return nil
	}
	limit := cut.length
	if special {
		for _, p := range t.processors {
			limit -= p.adds(len(parts) == 2)
		}
	}
	if limit < 0 {
		return fmt.Errorf("[tokenizer] truncation: max_length %d is less than the tokens that are added", cut.length)
	}
	total := 0
	for _, e := range parts {
		total += len(e.IDs)
	}
	if total <= limit {
		return nil
	}
	switch {
	case limit == 0:
		for _, e := range parts {
			e.cut(0, cut.left)
		}
	case cut.strategy == "LongestFirst" && len(parts) == 2:
		first, second := shares(len(parts[0].IDs), len(parts[1].IDs), limit)
		parts[0].cut(first, cut.left)
		parts[1].cut(second, cut.left)
	case cut.strategy == "LongestFirst":
		parts[0].cut(limit, cut.left)
	default:
		which := 0
		if cut.strategy == "OnlySecond" {
			which = 1
		}
		if which >= len(parts) {
			return fmt.Errorf("[tokenizer] truncation: strategy OnlySecond, but there is one text")
		}
		keep := len(parts[which].IDs) - (total - limit)
		if keep <= 0 {
			return fmt.Errorf("[tokenizer] truncation: %s cannot bring %d tokens to %d", cut.strategy, total, limit)
		}
		parts[which].cut(keep, cut.left)
	}
	return nil
}

// shares says how long two texts of more than limit tokens become: the longer one gives first, then both.
func shares(first, second, limit int) (int, int) {
	short := min(first, second)
	long := max(short, limit-short)
	if short+long > limit {
		short = limit / 2
		long = short + limit%2
	}
	if first > second {
		return long, short
	}
	return short, long
}

// cut keeps n tokens.
func (e *Encoding) cut(n int, left bool) {
	from, to := 0, n
	if len(e.IDs) <= n {
		return
	}
	if left {
		from, to = len(e.IDs)-n, len(e.IDs)
	}
	e.IDs = e.IDs[from:to]
	if e.full {
		e.Types, e.Spans, e.Special, e.Mask = e.Types[from:to], e.Spans[from:to], e.Special[from:to], e.Mask[from:to]
		e.values = e.values[from:to]
	}
}

// padding fills encodings up.
type padding struct {
	fixed    int // 0: to the longest of a batch
	left     bool
	multiple int
	id, kind int32
}

func readPadding(s *section) (*padding, error) {
	p := &padding{}
	strategy := json.RawMessage(`"BatchLongest"`)
	direction, token := "Right", ""
	s.value("strategy", &strategy)
	s.value("direction", &direction)
	s.value("pad_to_multiple_of", &p.multiple)
	s.value("pad_id", &p.id)
	s.value("pad_type_id", &p.kind)
	s.value("pad_token", &token)
	var fixed struct{ Fixed *int }
	switch json.Unmarshal(strategy, &fixed); {
	case fixed.Fixed != nil && *fixed.Fixed >= 0 && *fixed.Fixed <= 1<<20:
		p.fixed = *fixed.Fixed
	case string(strategy) != `"BatchLongest"`:
		s.fail("does not know the strategy %s", strategy)
	}
	p.left = direction == "Left"
	if direction != "Left" && direction != "Right" {
		s.fail("does not know the direction %q", direction)
	}
	if p.multiple < 0 || p.multiple > 1<<20 {
		s.fail("pad_to_multiple_of is %d", p.multiple)
	}
	return p, s.finish()
}

// fill brings all encodings to one length.
func (p *padding) fill(all []*Encoding) {
	length := p.fixed
	for _, e := range all {
		if p.fixed == 0 {
			length = max(length, len(e.IDs))
		}
	}
	if p.multiple > 0 && length%p.multiple > 0 {
		length += p.multiple - length%p.multiple
	}
	for _, e := range all {
		n := length - len(e.IDs)
		if n <= 0 {
			continue
		}
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = p.id
		}
		pad := extra(ids, p.kind, e.full)
		clear(pad.Mask)
		first, second := e, pad
		if p.left {
			first, second = pad, e
		}
		*e = *join(first, second)
	}
}

// join puts encodings one behind the other.
func join(parts ...*Encoding) *Encoding {
	out := &Encoding{}
	n := 0
	for _, e := range parts {
		n += len(e.IDs)
		out.full = out.full || e.full
	}
	out.IDs = make([]int32, 0, n)
	for _, e := range parts {
		out.IDs = append(out.IDs, e.IDs...)
		out.Types = append(out.Types, e.Types...)
		out.Spans = append(out.Spans, e.Spans...)
		out.Special = append(out.Special, e.Special...)
		out.Mask = append(out.Mask, e.Mask...)
		out.values = append(out.values, e.values...)
	}
	return out
}
