package goroutine

import "runtime"

// number is the number of the running goroutine, which a stack's first line has: "goroutine 18 [running]:". It takes
// microseconds, and more where the stack is deep.
func number() (n uintptr) {
	const before = len("goroutine ")
	var b [before + 20]byte
	for _, c := range b[before:runtime.Stack(b[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + uintptr(c-'0')
	}
	return n
}
