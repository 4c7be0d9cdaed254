//go:build !race

package brief

const underRace = false
