package objc

import (
	"fmt"
	"unsafe"
)

// mostWords is how many words a call takes at most, registers and stack together: what purego calls with.
const mostWords = 15

// Call is a call of objc_msgSend as the words that it takes: those that go into integer registers come first, then, on
// amd64, those on the stack.
type Call struct {
	Words [mostWords]uintptr
	N     int
	sizes [2][3]uint64 // structs whose address is passed
}

// Place lays a message out for a processor, "arm64" or "amd64", by the rules of C: AAPCS64, as Apple's, and System V.
// Both pass words in integer registers. A struct of more than two words goes to the stack on amd64; on arm64 its
// address is passed. Self and sel are the first two words. The call's memory must stay where it is until it has been
// made.
func (c *Call) Place(arch string, self, sel uintptr, args []Arg) error {
	const x86, arm = 6, 8 // integer registers
	c.Words = [mostWords]uintptr{self, sel}
	c.N = 2
	var stack [mostWords]uintptr
	onStack, structs := 0, 0
	word := func(w uintptr) error {
		if arch == "arm64" && c.N == arm || c.N == x86 && arch != "arm64" && onStack == len(stack) {
			return fmt.Errorf("[objc] BUG: a message of more words than registers")
		}
		if arch != "arm64" && c.N == x86 {
			stack[onStack] = w
			onStack++
			return nil
		}
		c.Words[c.N] = w
		c.N++
		return nil
	}
	for i := range args {
		a := &args[i]
		var err error
		switch {
		case a.Pointer != nil:
			err = word(uintptr(a.Pointer))
		case a.Kind != KindSize:
			err = word(uintptr(a.Words[0]))
		case arch == "arm64":
			c.sizes[structs] = a.Words
			err = word(uintptr(unsafe.Pointer(&c.sizes[structs])))
			structs++
		default:
			for _, w := range a.Words {
				stack[onStack] = uintptr(w)
				onStack++
			}
		}
		if err != nil {
			return err
		}
	}
	if onStack > 0 {
		c.N = x86 + copy(c.Words[x86:], stack[:onStack])
	}
	return nil
}
