package draw

import (
	"errors"
	"math"
	"slices"
)

// errNone is the error of scores of which none is a number above minus infinity.
var errNone = errors.New("the model's scores are no numbers, or no token may come")

// argmax is the token with the largest score, the first of several; NaN never is.
func argmax(x []float32) (int32, error) {
	at, best := -1, float32(math.Inf(-1))
	for i, v := range x {
		if v > best {
			at, best = i, v
		}
	}
	if at < 0 {
		return 0, errNone
	}
	return int32(at), nil
}

// logSum is the logarithm of the sum of e^x.
func logSum(x []float32) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, float64(v))
	}
	if math.IsInf(top, 0) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// best are the n tokens with the largest scores, the largest first, of equal ones the first first.
func (d *Drawer) best(x []float32, n int) []int32 {
	n = min(n, len(x))
	if n == 0 {
		return nil
	}
	out := d.order[:0]
	less := func(a, b int32) bool { return x[a] > x[b] || x[a] == x[b] && a < b }
	for i := range x {
		id := int32(i)
		if len(out) == n && !less(id, out[n-1]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, id, func(e, target int32) int {
			if less(e, target) {
				return -1
			}
			return 1
		})
		if len(out) < n {
			out = append(out, 0)
		}
		copy(out[at+1:], out[at:])
		out[at] = id
	}
	d.order = out
	return out
}

// choose is a token by filters, temperature and a random number.
func (d *Drawer) choose(x []float32) (int32, error) {
	r := &d.rules
	first, err := argmax(x)
	if err != nil || r.Temperature == 0 {
		return first, err
	}
	top := float64(x[first])
	if math.IsInf(top, 1) {
		return first, nil
	}
	total := logSum(x)
	least := math.Inf(-1) // the smallest score that stays
	if r.TopP > 0 && r.TopP < 1 {
		least = d.nucleus(x, top, total, r.TopP)
	}
	if r.MinP > 0 {
		limit := top + math.Log(r.MinP)
		if r.MinKeep > 1 {
			// what top_p has dropped counts as infinitely small there, as in mlx-lm
			keep := d.best(x, r.MinKeep)
			limit = min(limit, max(float64(x[keep[len(keep)-1]]), least))
		}
		least = max(least, limit)
	}
	if r.TopK > 0 && r.TopK < len(x) {
		least = max(least, d.kth(x, r.TopK))
	}
	sum := 0.0
	for _, v := range x {
		if float64(v) >= least {
			sum += math.Exp((float64(v) - top) / r.Temperature)
		}
	}
	left, last := d.random.Float64()*sum, first
	for i, v := range x {
		if !(float64(v) >= least) || math.IsInf(float64(v), -1) {
			continue
		}
		last = int32(i)
		if left -= math.Exp((float64(v) - top) / r.Temperature); left < 0 {
			break
		}
	}
	return last, nil
}

// nucleus is the smallest score of those tokens that have less than the probability p above them. It sorts no more
// tokens than that takes: those near the best one, further ones only where these are not enough.
func (d *Drawer) nucleus(x []float32, top, total, p float64) float64 {
	for depth := 4.0; ; depth *= 2 {
		near := d.order[:0]
		for i, v := range x {
			if float64(v) >= top-depth {
				near = append(near, int32(i))
			}
		}
		d.order = near
		slices.SortFunc(near, func(a, b int32) int { return compare(x[b], x[a]) })
		above := 0.0
		for i, id := range near {
			if above >= p {
				return float64(x[near[i-1]])
			}
			above += math.Exp(float64(x[id]) - total)
		}
		if above >= p {
			return float64(x[near[len(near)-1]])
		}
		if math.IsInf(depth, 1) {
			return math.Inf(-1)
		}
		if depth > 1000 {
			depth = math.Inf(1)
		}
	}
}

// kth is the k-th largest score.
func (d *Drawer) kth(x []float32, k int) float64 {
	if k <= 128 {
		best := d.best(x, k)
		return float64(x[best[k-1]])
	}
	all := append([]float32(nil), x...)
	slices.SortFunc(all, func(a, b float32) int { return compare(b, a) })
	return float64(all[k-1])
}

// compare orders numbers, NaN before all.
func compare(a, b float32) int {
	switch {
	case a < b || a != a && b == b:
		return -1
	case a > b || b != b && a == a:
		return 1
	}
	return 0
}
