// Package msl is the front end for the Metal Shading Language: it scans, preprocesses and parses a text, instantiates
// its templates, checks it, and lowers its kernels to kir. All errors of a text are reported at once, each with a
// code of codes.go, its place, and an excerpt; of a text that instantiates kernels by the thousand Load makes the
// first, and what is wrong with another is said when it is asked for. The math library (lib) and the helpers of
// package prelude are in scope.
package msl
