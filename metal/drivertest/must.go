package drivertest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// tester is what the suite needs of a *testing.T. The suite has its own few checks because it is no test file: programs
// that link it must not link a test library.
type tester interface {
	Errorf(format string, args ...any)
	FailNow()
}

// checks is the namespace of the checks; each ends the test when it fails, with the caller's words, a format and its
// values, in front.
type checks struct{}

var must checks

func (checks) fail(t tester, words []any, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(words) > 0 {
		text = fmt.Sprintf(fmt.Sprint(words[0]), words[1:]...) + ": " + text
	}
	t.Errorf("%s", text)
	t.FailNow()
}

// Equal compares deeply.
func (c checks) Equal(t tester, want, got any, words ...any) {
	if !reflect.DeepEqual(want, got) {
		c.fail(t, words, "got %v, want %v", got, want)
	}
}

// True wants a condition to hold.
func (c checks) True(t tester, ok bool, words ...any) {
	if !ok {
		c.fail(t, words, "the condition does not hold")
	}
}

// NoError wants no error.
func (c checks) NoError(t tester, err error, words ...any) {
	if err != nil {
		c.fail(t, words, "unexpected error: %v", err)
	}
}

// Error wants an error.
func (c checks) Error(t tester, err error, words ...any) {
	if err == nil {
		c.fail(t, words, "no error")
	}
}

// ErrorIs wants an error that is another.
func (c checks) ErrorIs(t tester, err, target error, words ...any) {
	if !errors.Is(err, target) {
		c.fail(t, words, "the error is %v, not %v", err, target)
	}
}

// ErrorContains wants an error whose text contains a string.
func (c checks) ErrorContains(t tester, err error, part string, words ...any) {
	if err == nil || !strings.Contains(err.Error(), part) {
		c.fail(t, words, "the error does not contain %q: %v", part, err)
	}
}
