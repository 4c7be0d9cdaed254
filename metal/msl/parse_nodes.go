package msl

// nodes allocates the most frequent nodes of the tree in slabs.
type nodes struct {
	names []nameNode
	types []TypeExpr
	bins  []BinaryExpr
	slab  int // names in the last slab: small texts get small slabs
}

// nameNode is a NameExpr with its Name: the most frequent node.
type nameNode struct {
	e NameExpr
	n Name
}

// newName allocates a NameExpr's name.
func (p *nodes) newName() *nameNode {
	if len(p.names) == 0 {
		p.slab = min(p.slab+8, 64)
		p.names = make([]nameNode, p.slab)
	}
	n := &p.names[0]
	p.names = p.names[1:]
	return n
}

// newType allocates a type at a place.
func (p *nodes) newType(at Pos, kind TypeKind) *TypeExpr {
	if len(p.types) == 0 {
		p.types = make([]TypeExpr, max(p.slab/2, 8))
	}
	t := &p.types[0]
	p.types = p.types[1:]
	t.At, t.Kind = at, kind
	return t
}

func (p *nodes) newBinary(at Pos, op Operator, x, y Expr) Expr {
	if len(p.bins) == 0 {
		p.bins = make([]BinaryExpr, max(p.slab/2, 8))
	}
	b := &p.bins[0]
	p.bins = p.bins[1:]
	b.At, b.Operator, b.X, b.Y = at, op, x, y
	return b
}
