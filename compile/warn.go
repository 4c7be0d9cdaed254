package compile

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
)

// manyTraces is how many calls without a replay in between are traced again before Warn is told, and manyNumbers how
// many are in all because one number has changed.
const (
	manyTraces  = 4
	manyNumbers = 2
)

// mostNumbers bounds the numbers whose changes are counted.
const mostNumbers = 64

// warn counts a call that was traced again, and tells Warn if there were many. Called with mu held, before the entry
// joins the cache.
func (fn *Function) warn(e *entry, fault error) {
	fn.again++
	if fn.warned || fn.opt.Warn == nil || len(fn.entries) == 0 {
		return
	}
	last, change, number := fn.entries[len(fn.entries)-1].sig, "", ""
	if fault == nil && last.key != e.sig.key && fn.opt.KeyChange != nil {
		change, number = fn.opt.KeyChange()
	}
	if number != "" && (fn.numbers[number] > 0 || len(fn.numbers) < mostNumbers) {
		if fn.numbers == nil {
			fn.numbers = map[string]int{}
		}
		fn.numbers[number]++
	}
	often := fmt.Sprintf("again at each of the last %d calls", fn.again)
	if number != "" && fn.numbers[number] >= manyNumbers {
		often = fmt.Sprintf("%d times for one number", fn.numbers[number]+1)
	} else if fn.again < manyTraces {
		return
	}
	fn.warned, fn.numbers = true, nil
	why, advice := fn.cause(last, e.sig, change, fault)
	fn.opt.Warn(fmt.Sprintf("a compiled function was traced %s, now because %s: %s", often, why, advice))
}

// cause says why a call was traced again, and what to write instead. Change is what KeyChange says.
func (fn *Function) cause(last, now signature, change string, fault error) (why, advice string) {
	switch {
	case fault != nil:
		return fault.Error(), "a size that is read as a number must stay what it was; where a shape is wanted, pass an " +
			"array, which stands for its shape"
	case last.key != now.key:
		if change == "" {
			change = "a constant or the arguments' structure changed"
		}
		return change, "pass a number that changes as an array"
	case last.stream != now.stream:
		return "it is called on another stream", "call it on one"
	case len(last.specs) != len(now.specs):
		return last.difference(now), "pass as many arrays each time"
	}
	for i, a := range last.specs {
		b, name := now.specs[i], fmt.Sprintf("input %d", i)
		if fn.opt.InputName != nil {
			name = fn.opt.InputName(i)
		}
		switch {
		case a.DType != b.DType:
			return fmt.Sprintf("%s has dtype %v, not %v", name, b.DType, a.DType), "convert it before the call"
		case len(a.Shape) != len(b.Shape):
			return fmt.Sprintf("%s has %s, not %d", name, tensor.Count(len(b.Shape), "dimension"), len(a.Shape)),
				"give it one number of dimensions before the call"
		case !a.Shape.Equal(b.Shape):
			return fmt.Sprintf("%s has shape %v, not %v", name, b.Shape, a.Shape),
				"compile the function with shapeless = true, which replays a trace at other sizes"
		}
	}
	return "earlier traces were evicted",
		fmt.Sprintf("the cache keeps %d: compile a function for each use", fn.opt.CacheSize)
}
