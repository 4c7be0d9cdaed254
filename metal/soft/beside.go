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

// beside runs the first of the commands todo side by side, as many as may be, and says how many: none, where the first
// of them is to run alone. The command buffer is not validated.
func (x *execution) beside(todo []int) (n int) {
	for n < min(len(todo), mostBeside) && mayRunBeside(&x.cmds[todo[n]]) {
		n++
	}
	if n < 2 {
		return 0
	}
	sides := x.sides[:0]
	for _, k := range todo[:n] {
		if !x.begins(k) {
			if x.stopped {
				break
			}
			continue
		}
		if len(sides) == len(x.sides) {
			x.sides = append(x.sides, &side{})
			sides = x.sides[:len(sides)]
		}
		s := x.sides[len(sides)]
		s.at, s.launch.Interrupt = k, x.interrupt(k)
		r, err := ready(&x.cmds[k], &s.launch)
		if err != nil {
			x.ended(k, err)
			continue
		}
		s.run = r
		sides = x.sides[:len(sides)+1]
	}
	if midway := x.runSides(sides); x.stopped || midway >= 0 {
		x.end(midway)
	}
	return n
}

// mayRunBeside reports whether a command may run beside others. Kernels of users run alone: one that writes to its
// inputs cannot be repeated, and an interruption would meet several.
func mayRunBeside(c *metal.Command) bool {
	return c.Kind == metal.CmdDispatch && c.Pipeline.Library().Source().Options.Portable
}

// runSides runs launches side by side, those with the longest threadgroups first, so that all processors end together.
// Midway is one that was interrupted, or -1.
func (x *execution) runSides(sides []*side) (midway int) {
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
		x.ended(s.at, err)
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
