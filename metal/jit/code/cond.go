package code

// Cond is a condition on the flags, as Jcc, SetCC and CMov take it. Its number is amd64's.
type Cond uint8

// The conditions, but for those of overflow, 0 and 1. Above and Below compare unsigned numbers, Greater and Less signed
// ones.
const (
	CondB  Cond = 2 + iota // below; carry
	CondAE                 // above or equal; no carry
	CondE                  // equal; zero
	CondNE                 // not equal; not zero
	CondBE                 // below or equal
	CondA                  // above
	CondS                  // negative
	CondNS                 // not negative
	_                      // parity
	_                      // no parity
	CondL                  // less
	CondGE                 // greater or equal
	CondLE                 // less or equal
	CondG                  // greater
)

var condNames = [16]string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"}

// Not returns the opposite condition.
func (c Cond) Not() Cond { return c ^ 1 }

// String returns the condition as it stands in mnemonics.
func (c Cond) String() string { return condNames[c&15] }
