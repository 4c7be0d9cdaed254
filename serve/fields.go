package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// fields are those of a request's body. Each that is asked for is taken; the first that is wrong is the error, and at
// the end one that nobody has taken.
type fields struct {
	raw   map[string]json.RawMessage
	taken map[string]bool
	err   *failure
}

// readFields reads a body.
func readFields(body []byte) (*fields, *failure) {
	f := &fields{taken: map[string]bool{}}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&f.raw); err != nil {
		return nil, invalid("", "the body is no JSON object: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, invalid("", "there is more after the JSON object")
	}
	return f, nil
}

// fail notes an error, if it is the first.
func (f *fields) fail(param, text string, args ...any) {
	if f.err == nil {
		f.err = invalid(param, text, args...)
	}
}

// take gives a field as JSON; null is none.
func (f *fields) take(name string) (json.RawMessage, bool) {
	f.taken[name] = true
	raw, ok := f.raw[name]
	if !ok || string(raw) == "null" {
		return nil, false
	}
	return raw, true
}

// value reads a field, as what kind says in words, and reports whether it is there.
func (f *fields) value(name, kind string, into any) bool {
	raw, ok := f.take(name)
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil {
		f.fail(name, "%s is %s, want %s", name, short(raw), kind)
		return false
	}
	return true
}

// short is the beginning of a JSON text.
func short(raw []byte) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "..."
	}
	return string(raw)
}

// number is a number from least to most.
func (f *fields) number(name string, least, most float64) (v float64, ok bool) {
	if !f.value(name, "a number", &v) {
		return 0, false
	}
	if v < least || v > most {
		plain := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		f.fail(name, "%s is %s, want a number from %s to %s", name, plain(v), plain(least), plain(most))
		return 0, false
	}
	return v, true
}

// count is an integer from least to most.
func (f *fields) count(name string, least, most int) (n int, ok bool) {
	v, ok := f.number(name, float64(least), float64(most))
	if ok && v != math.Trunc(v) {
		f.fail(name, "%s is %v, want an integer", name, v)
		return 0, false
	}
	return int(v), ok
}

func (f *fields) flag(name string) (v bool) {
	f.value(name, "true or false", &v)
	return v
}

func (f *fields) text(name string) (v string) {
	f.value(name, "a text", &v)
	return v
}

// texts is a text or a list of them.
func (f *fields) texts(name string, most int) (list []string) {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		f.fail(name, "%s is %s, want a text or a list of texts", name, short(raw))
		return nil
	}
	if most > 0 && len(list) > most {
		f.fail(name, "%s has %d texts, want %d at most", name, len(list), most)
	}
	if slices.Contains(list, "") {
		f.fail(name, "%s has an empty text", name)
	}
	return list
}

// only takes a field that changes nothing here, of which these values are right, as JSON; without values all are.
func (f *fields) only(name string, values ...string) {
	raw, ok := f.take(name)
	if ok && len(values) > 0 && !slices.Contains(values, string(raw)) {
		f.fail(name, "%s is %s, which is not supported here; these are: %v", name, short(raw), values)
	}
}

// drawing takes what says how tokens are chosen into a request.
func (f *fields) drawing(r request) {
	put := func(name, as string, least, most float64) {
		if v, ok := f.number(name, least, most); ok {
			r[as] = v
		}
	}
	r["temp"] = 1.0
	put("temperature", "temp", 0, 100)
	put("top_p", "top_p", 0, 1)
	put("min_p", "min_p", 0, 1)
	put("presence_penalty", "presence_penalty", -2, 2)
	put("frequency_penalty", "frequency_penalty", -2, 2)
	put("repetition_penalty", "repetition_penalty", 0, 100)
	for name, as := range map[string]string{"top_k": "top_k", "penalty_context": "context_size"} {
		if n, ok := f.count(name, 0, math.MaxInt32); ok {
			r[as] = float64(n)
		}
	}
	var bias map[string]float64
	if f.value("logit_bias", "an object of numbers", &bias) {
		ids, values := []any{}, []any{}
		for _, k := range slices.Sorted(maps.Keys(bias)) {
			id, err := strconv.Atoi(k)
			if err != nil {
				f.fail("logit_bias", "logit_bias has the key %q, want the number of a token", k)
			}
			ids, values = append(ids, float64(id)), append(values, bias[k])
		}
		r["bias_ids"], r["bias_values"] = ids, values
	}
}

// done is the first error, or that of a field that nobody has taken.
func (f *fields) done() error {
	if f.err != nil {
		return f.err
	}
	for _, name := range slices.Sorted(maps.Keys(f.raw)) {
		if !f.taken[name] {
			return invalid(name, "Unrecognized request argument supplied: %s", name)
		}
	}
	return nil
}

// seed is a seed for the answers to a request: the one that it has, or a random one.
func (f *fields) seed() uint64 {
	var v int64
	if f.value("seed", "an integer", &v) {
		return uint64(v)
	}
	return rand.Uint64()
}

// seedOf is the seed of the i-th answer, as a number of Lua's.
func seedOf(seed uint64, i int) float64 {
	const exact = 1 << 53 // what such a number holds
	v := seed + uint64(i)*0x9e3779b97f4a7c15
	v ^= v >> 53
	return float64(v % exact)
}
