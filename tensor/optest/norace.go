//go:build !race

package optest

const underRace = false
