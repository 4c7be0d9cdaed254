// Package draw chooses tokens of scores on the host, each text by rules of its own: what changes scores before (biases,
// penalties, tokens that a grammar allows), filters of the less probable tokens, and a draw from random numbers that
// belong to the text alone. So what a text becomes does not depend on the texts that are computed beside it. Filters,
// penalties and their order are those of lm.sampler and lm.processors, which follow mlx-lm.
package draw

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Rules say how one text's tokens are chosen. The zero value takes the best token.
type Rules struct {
	Temperature float64 // 0: the best token
	TopP        float64 // keep the best tokens of this probability together; 0 or 1: all
	MinP        float64 // keep tokens at least so probable, relative to the best; 0: all
	MinKeep     int     // tokens that MinP leaves in any case; 0 is 1
	TopK        int     // keep so many; 0: all
	Seed        uint64

	Bias                            map[int32]float64 // is added to scores
	Repetition, Presence, Frequency float64           // penalties; Repetition 0 or 1: none
	Context                         int               // how many of the last tokens penalties look at; 0 is 20
}

// Check is an error that names a rule that cannot be meant, for a vocabulary of so many tokens.
func (r *Rules) Check(words int) error {
	for _, c := range []struct {
		name           string
		v, least, most float64
	}{
		{"temperature", r.Temperature, 0, math.Inf(1)}, {"top_p", r.TopP, 0, 1}, {"min_p", r.MinP, 0, 1},
		{"min_tokens_to_keep", float64(r.MinKeep), 0, math.MaxInt32}, {"top_k", float64(r.TopK), 0, math.MaxInt32},
		{"repetition_penalty", r.Repetition, 0, math.Inf(1)}, {"context_size", float64(r.Context), 0, math.MaxInt32},
		{"presence_penalty", r.Presence, math.Inf(-1), math.Inf(1)},
		{"frequency_penalty", r.Frequency, math.Inf(-1), math.Inf(1)},
	} {
		if !(c.v >= c.least && c.v <= c.most) || math.IsInf(c.v, 0) {
			return fmt.Errorf("%s is %v, want a number from %v to %v", c.name, c.v, c.least, c.most)
		}
	}
	for id, v := range r.Bias {
		switch {
		case id < 0 || int(id) >= words:
			return fmt.Errorf("logit_bias has the token %d, want one of the %d tokens there are", id, words)
		case math.IsNaN(v):
			return fmt.Errorf("logit_bias has NaN for the token %d", id)
		}
	}
	return nil
}

// Plain reports whether the best of the scores as they are is always taken.
func (r *Rules) Plain() bool {
	return r.Temperature == 0 && len(r.Bias) == 0 && (r.Repetition == 0 || r.Repetition == 1) && r.Presence == 0 &&
		r.Frequency == 0
}

// Grammar says which tokens may come next.
type Grammar interface {
	// Allowed are the tokens that may come now, a bit for each. It is not kept.
	Allowed() []uint64
	// Accept goes on by a token that was allowed.
	Accept(token int32) error
}

// Drawer chooses the tokens of one text. It belongs to one goroutine at a time.
type Drawer struct {
	rules   Rules
	grammar Grammar
	random  *rand.Rand
	past    []int32
	room    []float32 // the scores that it works on
	order   []int32
}

// New is a Drawer for a text that has begun with past. grammar is nil if all tokens may come.
func New(rules Rules, past []int32, grammar Grammar) *Drawer {
	if rules.Context == 0 {
		rules.Context = 20
	}
	return &Drawer{rules: rules, grammar: grammar, random: rand.New(rand.NewPCG(rules.Seed, 0x6d6c786c7561)),
		past: append([]int32(nil), past[max(0, len(past)-rules.Context):]...)}
}

// Plain reports whether Draw always takes the best of the scores as they are.
func (d *Drawer) Plain() bool { return d.grammar == nil && d.rules.Plain() }

// Ranked is a token with the logarithm of its probability.
type Ranked struct {
	Token   int32
	LogProb float64
}

// Chosen is what Draw has chosen. LogProb is by the model's scores with biases and penalties, before filters, the
// temperature and the grammar; Best are the most probable tokens by the same, the most probable first.
type Chosen struct {
	Ranked
	Best []Ranked
}

// Draw chooses the next token of scores, one for each token, which it leaves as they are. With ranked >= 0 it also
// gives logarithms of probabilities, those of as many of the best tokens.
func (d *Drawer) Draw(scores []float32, ranked int) (Chosen, error) {
	d.room = append(d.room[:0], scores...)
	x := d.room
	d.penalize(x)
	var out Chosen
	var total float64
	if ranked >= 0 {
		total = logSum(x)
		for _, id := range d.best(x, ranked) {
			out.Best = append(out.Best, Ranked{id, float64(x[id]) - total})
		}
	}
	own := func(id int32) float64 { return float64(scores[id]) }
	if ranked >= 0 {
		kept := append([]float32(nil), x...)
		own = func(id int32) float64 { return float64(kept[id]) - total }
	}
	if d.grammar != nil {
		allow(x, d.grammar.Allowed())
	}
	id, err := d.choose(x)
	if err != nil {
		return out, err
	}
	out.Token, out.LogProb = id, own(id)
	if ranked < 0 {
		out.LogProb = 0
	}
	return out, d.Accept(id)
}

// Accept goes on by a token that was chosen otherwise.
func (d *Drawer) Accept(id int32) error {
	d.past = append(d.past, id)
	if n := len(d.past) - d.rules.Context; n > 0 {
		d.past = append(d.past[:0], d.past[n:]...)
	}
	if d.grammar != nil {
		return d.grammar.Accept(id)
	}
	return nil
}

// penalize adds biases and takes off penalties, in mlx-lm's order.
func (d *Drawer) penalize(x []float32) {
	r := &d.rules
	for id, v := range r.Bias {
		x[id] += float32(v)
	}
	if r.Repetition != 0 && r.Repetition != 1 {
		for id := range d.counts() {
			if p := float32(r.Repetition); x[id] < 0 {
				x[id] *= p
			} else {
				x[id] /= p
			}
		}
	}
	if r.Presence != 0 || r.Frequency != 0 {
		for id, n := range d.counts() {
			x[id] -= float32(r.Presence) + float32(r.Frequency)*float32(n)
		}
	}
}

// counts is how often each of the last tokens occurs.
func (d *Drawer) counts() map[int32]int {
	out := map[int32]int{}
	for _, id := range d.past {
		out[id]++
	}
	return out
}

// allow makes all tokens impossible that are not among those.
func allow(x []float32, allowed []uint64) {
	no := float32(math.Inf(-1))
	for i := range x {
		if i/64 >= len(allowed) || allowed[i/64]>>(i%64)&1 == 0 {
			x[i] = no
		}
	}
}
