package regalloc

import (
	"math/bits"
	"slices"
	"sort"
)

// extents gives each coarse virtual register one range that holds all its life, in time that does not depend on how
// many live at once. The range goes from where it is named first to where it is named last; the whole of a loop that
// begins in between; and, if it is written in several places, the whole of the outermost loops that both ends are in.
// That takes each read to be of something written earlier in the list, as code makes it that was made of structured
// code: written once, ahead of all that reads it, or set before the loop that it comes round. What the list reads
// first lives everywhere.
func (a *Allocator) extents() {
	if !slices.ContainsFunc(a.ivs, func(iv interval) bool { return iv.coarse }) {
		return
	}
	last := a.lasts()
	table := a.backTable()
	for v := range a.ivs {
		iv := &a.ivs[v]
		if !iv.coarse {
			continue
		}
		from, to := iv.seen, last[v]
		if a.reads(int32(v), from) {
			a.cover(int32(v), 0, 2*int32(len(a.first))-3)
			continue
		}
		for {
			before := to
			if iv.defs > 1 {
				from, to = a.outermost(from).from, a.outermost(to).to
			}
			if to = max(to, a.latestBack(table, from, to)); to == before {
				break
			}
		}
		a.cover(int32(v), 2*from, 2*to+1)
	}
}

// lasts finds the last instruction that names each virtual register.
func (a *Allocator) lasts() []int32 {
	last := make([]int32, len(a.ivs))
	for v := range a.ivs {
		last[v] = a.ivs[v].seen
	}
	for i := range int32(len(a.first) - 1) {
		for _, o := range a.ops[a.first[i]:a.first[i+1]] {
			last[o.V] = i
		}
	}
	return last
}

// reads reports whether instruction i reads v.
func (a *Allocator) reads(v, i int32) bool {
	for _, o := range a.ops[a.first[i]:a.first[i+1]] {
		if o.V == v && o.Role&Use != 0 {
			return true
		}
	}
	return false
}

// outermost returns the outermost loop that instruction i is in, or the instruction.
func (a *Allocator) outermost(i int32) span {
	k := sort.Search(len(a.loops), func(k int) bool { return a.loops[k].to >= i })
	if k < len(a.loops) && a.loops[k].from <= i {
		return a.loops[k]
	}
	return span{from: i, to: i}
}

// backTable tells, in row n, of each 1<<n blocks from each one on, the last instruction from which control goes to the
// beginning of one of them.
func (a *Allocator) backTable() [][]int32 {
	row := make([]int32, len(a.blocks))
	for b := range a.blocks {
		for _, t := range a.blocks[b].to {
			if t >= 0 {
				row[t] = max(row[t], a.blocks[b].last)
			}
		}
	}
	table := [][]int32{row}
	for n := 1; 2*n <= len(a.blocks); n *= 2 {
		next := make([]int32, len(row)-n)
		for k := range next {
			next[k] = max(row[k], row[k+n])
		}
		table, row = append(table, next), next
	}
	return table
}

// latestBack returns the last instruction from which control goes to the beginning of a block after instruction from
// and not after instruction to.
func (a *Allocator) latestBack(table [][]int32, from, to int32) int32 {
	first := sort.Search(len(a.blocks), func(k int) bool { return a.blocks[k].first > from })
	end := sort.Search(len(a.blocks), func(k int) bool { return a.blocks[k].first > to })
	if first >= end {
		return 0
	}
	n := bits.Len(uint(end-first)) - 1
	return max(table[n][first], table[n][end-1<<n])
}
