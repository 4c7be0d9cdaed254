// Package brief says which tests a run can spare because others show the same.
package brief

import "testing"

// Run reports whether the race detector watches in a -short run: a test that only compares many values is then left
// out.
func Run() bool { return underRace && testing.Short() }

// OnlyValues skips a test that takes long and differs from others in the values that it compares, where those are of no
// interest: under the race detector in a -short run.
func OnlyValues(t testing.TB) {
	t.Helper()
	if Run() {
		t.Skip("it compares values, and the race detector is slow")
	}
}
