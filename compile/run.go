package compile

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
)

// misfit says why a plan cannot serve a call.
type misfit struct{ reason string }

func (m *misfit) Error() string { return m.reason }

// run replays the plan: it makes new nodes on other inputs. It evaluates nothing. An error means that the plan does
// not fit: a guard fails, or a Shape rule refuses; then the function must be traced again.
func (p *plan) run(c *tensor.Ctx, in []*tensor.Array) ([]*tensor.Array, error) {
	outs, _, err := p.replay(c, in)
	return outs, err
}

// slots is how many outputs the steps have.
func (p *plan) slots() int {
	n := len(p.steps)
	if n == 0 {
		return 0
	}
	return p.steps[n-1].first + len(p.steps[n-1].given)
}

// replay is run, which also gives what the steps have computed, by slot: of those that are no outputs only what is
// known without their elements.
func (p *plan) replay(c *tensor.Ctx, in []*tensor.Array) (outs, values []*tensor.Array, err error) {
	defer c.Building()()
	values = make([]*tensor.Array, p.slots())
	get := func(r ref) *tensor.Array {
		switch r.kind {
		case 'i':
			return in[r.i]
		case 'c':
			return p.consts[r.i]
		}
		return values[r.i]
	}
	guards := p.guards
	check := func(done int) error {
		for ; len(guards) > 0 && guards[0].after <= done; guards = guards[1:] {
			g := guards[0]
			// A read: a surrounding trace must know that the plan was chosen by this dimension.
			n, err := get(g.of).Read(g.axis)
			if err != nil {
				return err
			}
			if n != g.size {
				return &misfit{g.describe(n)}
			}
		}
		return nil
	}
	var args []*tensor.Array
	for i := range p.steps {
		s := &p.steps[i]
		if err := check(i); err != nil {
			return nil, nil, err
		}
		args = args[:0]
		for _, r := range s.in {
			args = append(args, get(r))
		}
		for k, want := range s.specs {
			if have := args[k].Spec(); !have.Shape.Equal(want.Shape) {
				return nil, nil, &misfit{fmt.Sprintf("%s (%s) was called with numbers that fit an input of shape %v; now it is %v",
					s.call.Op.Name(), s.call.Place(), want.Shape, have.Shape)}
			}
		}
		outs := values[s.first:][:len(s.given)]
		s.call.Into(c, outs, args)
		for _, y := range outs {
			if err := y.Err(); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := check(len(p.steps)); err != nil {
		return nil, nil, err
	}
	outs = make([]*tensor.Array, len(p.outs))
	for i, r := range p.outs {
		outs[i] = get(r)
	}
	// No one can read what lies between: the planner may fuse all of it.
	for i := range p.steps {
		s := &p.steps[i]
		for k, keep := range s.given {
			if !keep {
				tensor.Drop(values[s.first+k])
			}
		}
	}
	return outs, values, nil
}

func (g guard) describe(now int) string {
	of := "an intermediate array"
	if g.of.kind == 'i' {
		of = fmt.Sprintf("input %d", g.of.i)
	}
	at := ""
	if g.where != "" {
		at = ", read at " + g.where + ","
	}
	if g.axis == tensor.WholeSize {
		return fmt.Sprintf("the size of %s%s was %d, is %d", of, at, g.size, now)
	}
	return fmt.Sprintf("dimension %d of %s%s was %d, is %d", g.axis, of, at, g.size, now)
}
