// Package serial marks the tests that must run alone. All others of the rooms that internal/house lists begin with
// t.Parallel().
package serial

import "testing"

// Because says that a test runs beside no other one of its package, and why: it sets or measures what belongs to the
// whole process. If the test or one that it is a part of has called t.Parallel, it panics.
func Because(t testing.TB, why string) {
	t.Helper()
	t.Setenv("MLXLUA_TEST_SERIAL", why) // which testing refuses in a parallel test
}
