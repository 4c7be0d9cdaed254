package draw

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// kept are the tokens that filters leave, by their definitions: sort, add up, compare.
func kept(x []float32, r Rules) []float64 {
	n := len(x)
	p, order := make([]float64, n), make([]int, n)
	sum := 0.0
	for i, v := range x {
		p[i], order[i] = math.Exp(float64(v)), i
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, p[b]-p[a])) })
	in := make([]bool, n)
	above := 0.0
	for k, i := range order {
		in[i] = (r.TopP == 0 || r.TopP == 1 || above < r.TopP) && (r.TopK == 0 || k < r.TopK) &&
			(p[i] >= r.MinP*p[order[0]] || k < r.MinKeep)
		above += p[i]
	}
	total := 0.0
	for i := range p {
		if in[i] {
			p[i] = math.Pow(p[i], 1/r.Temperature)
			total += p[i]
		} else {
			p[i] = 0
		}
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// TestDrawsAreThoseOfTheFormula: how often a token is drawn is its probability after filters and temperature, by a
// chi-squared test whose chance of a false alarm is about 1e-6 for each case.
func TestDrawsAreThoseOfTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range []Rules{
		{Temperature: 1}, {Temperature: 0.5}, {Temperature: 2}, {Temperature: 1, TopP: 0.7}, {Temperature: 1, TopP: 0.05},
		{Temperature: 0.8, TopK: 3}, {Temperature: 1, MinP: 0.2}, {Temperature: 1, MinP: 0.9, MinKeep: 4},
		{Temperature: 1.5, TopP: 0.9, MinP: 0.05, TopK: 6}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.999},
	} {
		x := make([]float32, 12)
		for i := range x {
			x[i] = float32(random.NormFloat64() * 2)
		}
		want := kept(x, r)
		d := New(r, nil, nil)
		const draws = 20000
		counts := make([]int, len(x))
		for range draws {
			c, err := d.Draw(x, -1)
			require.NoError(t, err)
			counts[c.Token]++
		}
		chi, free := 0.0, -1
		for i, p := range want {
			if p == 0 {
				require.Zero(t, counts[i], "%+v: token %d", r, i)
				continue
			}
			e := p * draws
			chi += (float64(counts[i]) - e) * (float64(counts[i]) - e) / e
			free++
		}
		limit := float64(free) + 5*math.Sqrt(2*float64(free)) + 15
		require.LessOrEqual(t, chi, limit, "%+v", r)
	}
}

// TestGreedy: without a temperature the best token is taken, the first of equal ones, and NaN never.
func TestGreedy(t *testing.T) {
	nan := float32(math.NaN())
	for want, x := range map[int32][]float32{0: {3, 3, 1}, 2: {1, nan, 2}, 1: {float32(math.Inf(-1)), -5, nan}} {
		c, err := New(Rules{}, nil, nil).Draw(x, -1)
		require.NoError(t, err)
		require.Equal(t, want, c.Token)
	}
	_, err := New(Rules{Temperature: 1}, nil, nil).Draw([]float32{nan, nan}, -1)
	require.ErrorIs(t, err, errNone)
}

// TestSeeds: the same seed draws the same, another one something else.
func TestSeeds(t *testing.T) {
	x := make([]float32, 1000)
	draws := func(seed uint64) (out []int32) {
		d := New(Rules{Temperature: 1, Seed: seed}, nil, nil)
		for range 20 {
			c, err := d.Draw(x, -1)
			require.NoError(t, err)
			out = append(out, c.Token)
		}
		return out
	}
	require.Equal(t, draws(5), draws(5))
	require.NotEqual(t, draws(5), draws(6))
}

// TestPenalties are mlx-lm's formulas, by hand: of the last two tokens, and of all.
func TestPenalties(t *testing.T) {
	x := []float32{2, -2, 1, 0}
	probs := func(r Rules, past ...int32) []float64 {
		c, err := New(r, past, nil).Draw(x, 4)
		require.NoError(t, err)
		out := make([]float64, 4)
		for _, b := range c.Best {
			out[b.Token] = b.LogProb
		}
		return out
	}
	same := func(want []float32, got []float64) {
		total := logSum(want)
		for i := range want {
			require.InDelta(t, float64(want[i])-total, got[i], 1e-6)
		}
	}
	same(x, probs(Rules{}, 0, 1))
	same([]float32{1, -4, 1, 0}, probs(Rules{Repetition: 2}, 0, 1))
	same([]float32{2, -4, 0.5, 0}, probs(Rules{Repetition: 2, Context: 2}, 0, 1, 2))
	same([]float32{1.5, -2.5, 1, 0}, probs(Rules{Presence: 0.5}, 0, 0, 1))
	same([]float32{1, -2.5, 1, 0}, probs(Rules{Frequency: 0.5}, 0, 0, 1))
	same([]float32{2, 1, 1, 0}, probs(Rules{Bias: map[int32]float64{1: 3}}))
}

// odd allows odd tokens.
type odd struct{ seen []int32 }

func (*odd) Allowed() []uint64          { return []uint64{0xaaaaaaaaaaaaaaaa} }
func (o *odd) Accept(token int32) error { o.seen = append(o.seen, token); return nil }

// TestGrammars: tokens that a grammar does not allow are never drawn, and it hears of those that are.
func TestGrammars(t *testing.T) {
	for _, temperature := range []float64{0, 1} {
		g := &odd{}
		d := New(Rules{Temperature: temperature}, nil, g)
		for i := range 50 {
			c, err := d.Draw([]float32{9, 1, 8, 2, 7, 0}, 0)
			require.NoError(t, err)
			require.EqualValues(t, 1, c.Token%2)
			require.Len(t, g.seen, i+1)
			require.Less(t, c.LogProb, 0.0)
		}
	}
}

// TestRulesAreChecked: each rule that cannot be meant is an error that names it.
func TestRulesAreChecked(t *testing.T) {
	for want, r := range map[string]Rules{"temperature": {Temperature: -1}, "top_p": {TopP: 1.5},
		"min_p": {MinP: math.NaN()}, "top_k": {TopK: -1},
		"repetition_penalty": {Repetition: -2}, "presence_penalty": {Presence: math.Inf(1)},
		"logit_bias": {Bias: map[int32]float64{10: 1}}} {
		require.ErrorContains(t, r.Check(10), want)
	}
	require.NoError(t, (&Rules{Temperature: 1, TopP: 1}).Check(10))
}
