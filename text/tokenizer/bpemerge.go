package tokenizer

import "math"

// bpeWord is the workplace of BPE: the symbols of one word, in order.
type bpeWord struct {
	symbols []bpeSymbol
	heap    []bpePair
}

// bpeSymbol is one symbol. rank and joined belong to the pair of it and its successor.
type bpeSymbol struct {
	id, size     int32 // size: bytes
	rank, joined int32
	prev, next   int32 // for long words
}

// unranked is the rank of a pair that is no merge.
const unranked = math.MaxInt32

// shortWord is up to which length looking at all pairs beats a heap.
const shortWord = 40

// token is an id and how many bytes of the word it covers.
type token struct{ id, size int32 }

func (b *bpeWord) reset() { b.symbols = b.symbols[:0] }

func (b *bpeWord) add(id int32, size int) {
	b.symbols = append(b.symbols, bpeSymbol{id: id, size: int32(size)})
}

// rate looks the pair of the symbols i and j up.
func (b *bpeWord) rate(merges *pairs, i, j int32) {
	s := &b.symbols[i]
	s.rank = unranked
	if j >= 0 && int(j) < len(b.symbols) {
		if joined, rank, ok := merges.get(s.id, b.symbols[j].id); ok {
			s.joined, s.rank = joined, rank
		}
	}
}

// merge joins pairs, the one of the lowest rank first, and of these the leftmost, until no pair is a merge.
func (b *bpeWord) merge(merges *pairs) {
	if len(b.symbols) > shortWord {
		b.mergeLong(merges)
		return
	}
	for i := range b.symbols {
		b.rate(merges, int32(i), int32(i+1))
	}
	for {
		best, at := int32(unranked), -1
		for i := range b.symbols {
			if b.symbols[i].rank < best {
				best, at = b.symbols[i].rank, i
			}
		}
		if at < 0 {
			return
		}
		s := &b.symbols[at]
		s.id = s.joined
		s.size += b.symbols[at+1].size
		b.symbols = append(b.symbols[:at+1], b.symbols[at+2:]...)
		b.rate(merges, int32(at), int32(at+1))
		if at > 0 {
			b.rate(merges, int32(at-1), int32(at))
		}
	}
}

// bpePair is a pair in the heap: the rank and the left symbol in one number, and what the pair becomes.
type bpePair struct {
	key    uint64
	joined int32
}

// mergeLong is merge for long words: a heap of pairs over a linked list of symbols, so that time grows as n log n.
func (b *bpeWord) mergeLong(merges *pairs) {
	n := int32(len(b.symbols))
	b.heap = b.heap[:0]
	for i := range n {
		s := &b.symbols[i]
		s.prev, s.next = i-1, i+1
	}
	for i := range n {
		if b.rate(merges, i, i+1); b.symbols[i].rank != unranked {
			b.heap = append(b.heap, b.pair(i))
		}
	}
	for k := len(b.heap)/2 - 1; k >= 0; k-- {
		b.sink(k, b.heap[k], len(b.heap))
	}
	for len(b.heap) > 0 {
		top := b.pop()
		at := int32(uint32(top.key))
		s := &b.symbols[at]
		// The symbols may have changed since the pair was put here.
		if s.size == 0 || s.next >= n || s.rank != int32(top.key>>32) || s.joined != top.joined {
			continue
		}
		right := &b.symbols[s.next]
		s.id = s.joined
		s.size += right.size
		s.next = right.next
		right.size = 0
		if s.next < n {
			b.symbols[s.next].prev = at
		}
		if s.prev >= 0 {
			b.push(merges, s.prev)
		}
		b.push(merges, at)
	}
	kept := b.symbols[:0]
	for _, s := range b.symbols {
		if s.size > 0 {
			kept = append(kept, s)
		}
	}
	b.symbols = kept
}

// pair is what the heap holds of symbol i and its successor.
func (b *bpeWord) pair(i int32) bpePair {
	s := &b.symbols[i]
	return bpePair{uint64(uint32(s.rank))<<32 | uint64(uint32(i)), s.joined}
}

// push rates the pair that begins at symbol i, and puts it into the heap if it is a merge.
func (b *bpeWord) push(merges *pairs, i int32) {
	b.rate(merges, i, b.symbols[i].next)
	if b.symbols[i].rank == unranked {
		return
	}
	added := b.pair(i)
	k := len(b.heap)
	b.heap = append(b.heap, added)
	for k > 0 {
		up := (k - 1) / 2
		if b.heap[up].key <= added.key {
			break
		}
		b.heap[k] = b.heap[up]
		k = up
	}
	b.heap[k] = added
}

func (b *bpeWord) pop() bpePair {
	top := b.heap[0]
	last := len(b.heap) - 1
	moved := b.heap[last]
	b.heap = b.heap[:last]
	if last > 0 {
		b.sink(0, moved, last)
	}
	return top
}

// sink puts a pair into the heap of n pairs, at place k or below it.
func (b *bpeWord) sink(k int, pair bpePair, n int) {
	heap := b.heap[:n]
	for {
		child := 2*k + 1
		if child >= n {
			break
		}
		if child+1 < n && heap[child+1].key < heap[child].key {
			child++
		}
		if pair.key <= heap[child].key {
			break
		}
		heap[k] = heap[child]
		k = child
	}
	heap[k] = pair
}

// tokens appends what the word has become.
func (b *bpeWord) tokens(to []token) []token {
	for _, s := range b.symbols {
		to = append(to, token{s.id, s.size})
	}
	return to
}
