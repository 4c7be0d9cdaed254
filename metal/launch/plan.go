package launch

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxGrid is the largest extent of a grid: positions are 32 bits wide.
const maxGrid = 1<<32 - 1

// maxThreads is Metal's limit of threads per threadgroup.
const maxThreads = 1024

// Plan is what follows from a Launch of a kernel: how many threadgroups there are, and where each thing is in the
// memory of one. Regions come first, at RegionOffsets.
type Plan struct {
	Groups  [3]int // threadgroups in each dimension
	Total   int64  // in all
	Offsets []int  // by Param: byte offset in the threadgroup's memory, -1 for those that are no Threadgroup ones
	Lengths []int  // by Param: bytes there, 0 for others
	Bytes   int    // of a threadgroup's memory
}

// RegionOffsets returns where a kernel's Threadgroup regions are in a threadgroup's memory, and its Thread regions in
// that of a lane, both by region (-1 for others).
func RegionOffsets(k *kir.Kernel) (threadgroup, thread []int) {
	threadgroup, thread = make([]int, len(k.Regions)), make([]int, len(k.Regions))
	tg, th := 0, 0
	for i, r := range k.Regions {
		threadgroup[i], thread[i] = -1, -1
		switch r.Space {
		case kir.Threadgroup:
			threadgroup[i] = tg
			tg += padded(r.Size)
		case kir.Thread:
			thread[i] = th
			th += padded(r.Size)
		}
	}
	return threadgroup, thread
}

func padded(n int) int { return (n + 15) &^ 15 }

// OwnBytes is the size of a kernel's Threadgroup regions, and of its Thread regions for one lane.
func OwnBytes(k *kir.Kernel) (threadgroup, thread int) {
	for _, r := range k.Regions {
		switch r.Space {
		case kir.Threadgroup:
			threadgroup += padded(r.Size)
		case kir.Thread:
			thread += padded(r.Size)
		}
	}
	return threadgroup, thread
}

// Check verifies a kernel: that it is well-formed, and its own memory not too large.
func Check(k *kir.Kernel) error {
	if err := k.Verify(); err != nil {
		return err
	}
	if tg, th := OwnBytes(k); tg > kir.MaxRegionBytes || th*kir.Lanes > kir.MaxRegionBytes {
		return fmt.Errorf("[%s] the kernel's own memory is too large: %d bytes a threadgroup, %d bytes a thread",
			k.Name, tg, th)
	}
	return nil
}

// Check fills in the plan of a launch, using its slices again; the error says what is wrong with the launch.
func (p *Plan) Check(k *kir.Kernel, l *Launch) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("[%s] %s", k.Name, fmt.Sprintf(format, args...))
	}
	threads := 1
	p.Total = 1
	for i := range 3 {
		if l.Grid[i] < 0 || int64(l.Grid[i]) > maxGrid {
			return fail("grid is out of range: %v", l.Grid)
		}
		if l.Threadgroup[i] < 1 || l.Threadgroup[i] > maxThreads {
			return fail("threadgroup is out of range: %v", l.Threadgroup)
		}
		threads *= l.Threadgroup[i]
		p.Groups[i] = (l.Grid[i] + l.Threadgroup[i] - 1) / l.Threadgroup[i]
		if p.Groups[i] != 0 && p.Total > (1<<62)/int64(p.Groups[i]) {
			return fail("grid is out of range: %v", l.Grid)
		}
		p.Total *= int64(p.Groups[i])
	}
	limit := maxThreads
	if k.MaxThreads > 0 {
		limit = min(limit, k.MaxThreads)
	}
	if threads > limit {
		return fail("threadgroup %v has %d threads, the limit is %d", l.Threadgroup, threads, limit)
	}
	if len(l.Buffers) != len(k.Params) {
		return fail("%d buffers bound, the kernel has %d parameters", len(l.Buffers), len(k.Params))
	}
	if l.Fixed != nil && len(l.Fixed) != len(k.Params) {
		return fail("Fixed has %d entries, the kernel has %d parameters", len(l.Fixed), len(k.Params))
	}
	p.Offsets, p.Lengths = p.Offsets[:0], p.Lengths[:0]
	p.Bytes, _ = OwnBytes(k)
	for i, q := range k.Params {
		if q.Space != kir.Threadgroup {
			p.Offsets, p.Lengths = append(p.Offsets, -1), append(p.Lengths, 0)
			if len(l.Buffers[i]) < q.MinBytes {
				return fail("buffer %q has %d bytes, the kernel needs %d", q.Name, len(l.Buffers[i]), q.MinBytes)
			}
			continue
		}
		if i >= len(l.ThreadgroupBytes) || l.ThreadgroupBytes[i] < 0 || l.ThreadgroupBytes[i] > kir.MaxRegionBytes {
			return fail("no valid length given for threadgroup memory %q", q.Name)
		}
		p.Offsets, p.Lengths = append(p.Offsets, p.Bytes), append(p.Lengths, l.ThreadgroupBytes[i])
		p.Bytes += padded(l.ThreadgroupBytes[i])
	}
	return nil
}
