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

// maxConcurrent is how many kernels run side by side.
const maxConcurrent = 16

// concurrentLaunch is one of several launches that run side by side.
type concurrentLaunch struct {
	launch launch.Launch
	run    run
	at     int // its command
}

// concurrent runs the first n of the commands todo side by side and returns n, which is 0 if the first of them must run
// alone. The command buffer is not validated.
func (x *execution) concurrent(todo []int) (n int) {
	for n < min(len(todo), maxConcurrent) && mayRunConcurrently(&x.cmds[todo[n]]) {
		n++
	}
	if n < 2 {
		return 0
	}
	launches := x.launches[:0]
	for _, k := range todo[:n] {
		if !x.begins(k) {
			if x.stopped {
				break
			}
			continue
		}
		if len(launches) == len(x.launches) {
			x.launches = append(x.launches, &concurrentLaunch{})
			launches = x.launches[:len(launches)]
		}
		s := x.launches[len(launches)]
		s.at, s.launch.Interrupt = k, x.interrupt(k)
		r, err := ready(&x.cmds[k], &s.launch)
		if err != nil {
			x.ended(k, err)
			continue
		}
		s.run = r
		launches = x.launches[:len(launches)+1]
	}
	if midway := x.runConcurrent(launches); x.stopped || midway >= 0 {
		x.end(midway)
	}
	return n
}

// mayRunConcurrently reports whether a command may run beside others. Kernels of users run alone: one that writes to
// its inputs cannot be repeated, and an interruption would meet several.
func mayRunConcurrently(c *metal.Command) bool {
	return c.Kind == metal.CmdDispatch && c.Pipeline.Library().Source().Options.Portable
}

// runConcurrent runs launches side by side, those with the longest threadgroups first, so that all processors end
// together. Midway is one that was interrupted, or -1.
func (x *execution) runConcurrent(launches []*concurrentLaunch) (midway int) {
	if len(launches) == 0 {
		return -1
	}
	slices.SortStableFunc(launches, func(a, b *concurrentLaunch) int {
		return cmp.Compare(groupTime(b.run), groupTime(a.run))
	})
	x.runs = x.runs[:0]
	for _, s := range launches {
		x.runs = append(x.runs, s.run)
	}
	x.perform()
	midway = -1
	for _, s := range launches {
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

// groupTime is how long a threadgroup of a launch may take; 0 if nothing is known.
func groupTime(r run) int64 {
	if j, compiled := r.(*jit.Run); compiled {
		return j.Each()
	}
	return 0
}
