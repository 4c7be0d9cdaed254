package grammar

import (
	"encoding/binary"
	"errors"
	"slices"
)

// config is a node with a stack of nodes to go on to, by its number.
type config struct{ node, stack int32 }

// state is where a text can be: all nodes that what has come leads to.
type state struct {
	configs []config
	accept  bool
	next    [256]*state
	known   [256]bool
	mask    []uint64
}

// states are those of an automaton that were met.
type states struct {
	b      *builder
	start  *state
	by     map[string]*state
	stacks []config // of each stack its last node and the stack below; 0 is empty
	stack  map[config]int32
	masked []*state
}

// mostStates bounds the states that are kept; mostConfigs is how many nodes a text can be at.
const (
	mostStates  = 20_000
	mostConfigs = 20_000
)

func newStates(b *builder, start int32) (*states, error) {
	s := &states{b: b, by: map[string]*state{}, stacks: []config{{}}, stack: map[config]int32{}}
	s.start = s.closure([]config{{start, 0}})
	if s.start == nil {
		return nil, errors.New("the schema refers to itself without end")
	}
	return s, nil
}

// closure is the state of all nodes that are reached without a byte; nil if they are too many.
func (s *states) closure(from []config) *state {
	seen := map[config]bool{}
	var out []config
	accept := false
	for len(from) > 0 {
		c := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[c] {
			continue
		}
		if len(seen) > mostConfigs {
			return nil
		}
		seen[c] = true
		n := &s.b.nodes[c.node]
		switch n.kind {
		case byteNode:
			out = append(out, c)
		case anyNode:
			for _, to := range n.to {
				from = append(from, config{to, c.stack})
			}
		case callNode:
			below := config{n.to[0], c.stack}
			id, ok := s.stack[below]
			if !ok {
				id = int32(len(s.stacks))
				s.stacks = append(s.stacks, below)
				s.stack[below] = id
			}
			from = append(from, config{s.b.rules[n.rule], id})
		case popNode:
			top := s.stacks[c.stack]
			from = append(from, config{top.node, top.stack})
		case endNode:
			accept = true
		}
	}
	slices.SortFunc(out, func(a, b config) int {
		if a.node != b.node {
			return int(a.node - b.node)
		}
		return int(a.stack - b.stack)
	})
	key := make([]byte, 0, 8*len(out)+1)
	for _, c := range out {
		key = binary.LittleEndian.AppendUint32(key, uint32(c.node))
		key = binary.LittleEndian.AppendUint32(key, uint32(c.stack))
	}
	if accept {
		key = append(key, 1)
	}
	if known := s.by[string(key)]; known != nil {
		return known
	}
	if len(s.by) >= mostStates {
		clear(s.by)
	}
	st := &state{configs: out, accept: accept}
	s.by[string(key)] = st
	return st
}

// step is the state after a byte; nil: it may not come.
func (s *states) step(st *state, c byte) *state {
	if st.known[c] {
		return st.next[c]
	}
	st.known[c] = true
	var to []config
	for _, at := range st.configs {
		for _, sp := range s.b.nodes[at.node].spans {
			if sp.low <= c && c <= sp.high {
				to = append(to, config{sp.to, at.stack})
			}
		}
	}
	if len(to) > 0 {
		st.next[c] = s.closure(to)
	}
	return st.next[c]
}
