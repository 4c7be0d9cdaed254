package compile

// What a Function takes in memory, in bytes: about, and rather more than less.
const (
	functionBytes = 1024
	entryBytes    = 512 // with what it tells of itself
	stepBytes     = 320
	refBytes      = 16
	specBytes     = 96
	guardBytes    = 96
	pieceBytes    = 160
	preparedBytes = 256
)

// Bytes is about what the function takes in memory beside the arrays that its traces keep (Constants).
func (fn *Function) Bytes() int64 {
	fn.mu.Lock()
	defer fn.mu.Unlock()
	n := int64(functionBytes)
	for _, e := range fn.entries {
		n += entryBytes + int64(len(e.sig.key)) + specBytes*int64(len(e.sig.specs)) + e.plan.bytes()
	}
	for _, list := range [][]string{fn.history, fn.captures} {
		for _, text := range list {
			n += refBytes + int64(len(text))
		}
	}
	return n
}

// Bytes is about what the program takes in memory beside the arrays that it keeps (Constants).
func (p *Program) Bytes() int64 { return p.plan.bytes() }

func (p *plan) bytes() int64 {
	n := refBytes*int64(len(p.consts)+len(p.outs)) + guardBytes*int64(len(p.guards))
	n += p.steady.bytes()
	for _, s := range p.steps {
		n += stepBytes + refBytes*int64(len(s.in)) + specBytes*int64(len(s.specs))
	}
	return n
}
