// Package goroutine tells goroutines apart: Go has no name for them, and what only one of them may use at a time has
// to know which one that is.
package goroutine
