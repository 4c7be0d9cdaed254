//go:build race

package brief

// underRace says that the race detector watches. It slows compilers down ten times, and the values do not interest it.
const underRace = true
