// Package fake is an Objective-C runtime in Go with as much of Metal as the driver of Apple's GPUs uses, for tests on
// every system: kernels run on the processor, by metal/jit or metal/interp.
//
// It is stricter than Metal. What a Mac ends a program for, or passes over and gives wrong results, is a Problem, and a
// panic: arguments of other types than the table of messages has, messages to what was released, objects without a
// pool, calls in the wrong order, launches beyond the limits. What was never released is a Leak. What lies between two
// barriers runs in any order.
package fake
