package soft

import (
	"cmp"
	"errors"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// Between two barriers no command depends on another. So their kernels run side by side, as if they were one launch: a
// processor that finds nothing left of one takes the next, where it would wait for the others to end theirs.

// mostBeside is how many kernels run side by side.
const mostBeside = 16

// side is one of several launches that run side by side.
type side struct {
	launch launch.Launch
	run    run
	at     int // its command
}

// beside runs the first of the commands todo side by side, as many as may be, and says how many: none, where the
// first of them is to run alone. done are those since the last barrier, from first on, that have run. It adds errors to
// failed; end is not nil if the command buffer ends with it. The command buffer is not validated.
func (x *execution) beside(cb *metal.CommandBuffer, cmds []metal.Command, first int, done, todo []int,
	failed *[]error) (n int, end error) {
	for n < min(len(todo), mostBeside) && mayRunBeside(&cmds[todo[n]]) {
		n++
	}
	if n < 2 {
		return 0, nil
	}
	ran := slices.Clone(done)
	sides, stopped := x.sides[:0], false
	for _, k := range todo[:n] {
		if stopped = cb.StopBefore(k); stopped {
			break
		}
		if len(sides) == len(x.sides) {
			x.sides = append(x.sides, &side{})
			sides = x.sides[:len(sides)]
		}
		s := x.sides[len(sides)]
		s.at, s.launch.Interrupt = k, cb.Interrupt(k)
		r, err := ready(&cmds[k], &s.launch)
		if err != nil {
			*failed, ran = append(*failed, cb.Failed(k, err)), append(ran, k)
			continue
		}
		s.run = r
		sides = x.sides[:len(sides)+1]
	}
	midway := x.runSides(cb, cmds, sides, &ran, failed)
	if stopped || midway >= 0 {
		return n, interrupted(cb, first, ran, midway, *failed)
	}
	return n, nil
}

// mayRunBeside reports whether a command may run beside others. Kernels of users run alone: one that writes to its
// inputs cannot be repeated, and an interruption would meet several.
func mayRunBeside(c *metal.Command) bool {
	return c.Kind == metal.CmdDispatch && c.Pipeline.Library().Source().Options.Portable
}

// runSides runs launches side by side, those with the longest threadgroups first, so that all processors end
// together. It adds those that have run to ran, and the errors; midway is one that was interrupted, or -1.
func (x *execution) runSides(cb *metal.CommandBuffer, cmds []metal.Command, sides []*side, ran *[]int,
	failed *[]error) (midway int) {
	if len(sides) == 0 {
		return -1
	}
	slices.SortStableFunc(sides, func(a, b *side) int { return cmp.Compare(each(b.run), each(a.run)) })
	x.runs = x.runs[:0]
	for _, s := range sides {
		x.runs = append(x.runs, s.run)
	}
	x.perform()
	midway = -1
	for _, s := range sides {
		err := ended(s.run)
		s.run = nil
		if f := s.launch.Interrupt; f != nil && f.Load() && errors.Is(err, launch.ErrInterrupted) {
			midway = s.at
			continue
		}
		*ran = append(*ran, s.at)
		if err != nil {
			*failed = append(*failed, cb.Failed(s.at, err))
		}
	}
	return midway
}

// each is how long a threadgroup of a launch may take; 0 if nothing is known.
func each(r run) int64 {
	if j, compiled := r.(*jit.Run); compiled {
		return j.Each()
	}
	return 0
}
