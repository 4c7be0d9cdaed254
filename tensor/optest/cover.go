package optest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// covered are the ops and the functions of mx that ran.
var covered sync.Map

func cover(op Subject) {
	for _, name := range append(strings.Fields(op.Name)[:1], op.Ops...) {
		covered.Store(name, true)
	}
}

// Main runs a package's tests and fails if an op or a function of mx that the package declares was covered by none of
// them, unless another place covers it: elsewhere says which, by the name. A function is covered by a Subject of its
// name, whatever words stand behind it, or by Call; one that takes no arrays needs golden data only. Main is for
// TestMain, and gives the exit status. Where -run selects tests, only those decide.
func Main(m *testing.M, elsewhere map[string]string) int {
	pc, _, _, _ := runtime.Caller(1)
	caller := runtime.FuncForPC(pc).Name()
	folder := strings.LastIndex(caller, "/") + 1
	name, _, _ := strings.Cut(caller[folder:], ".")
	room := caller[:folder] + strings.TrimSuffix(name, "_test")
	own := tensor.Ops()
	maps.DeleteFunc(own, func(_ string, op *tensor.Op) bool { return op.Package() != room })
	oneByOne()
	status := m.Run()
	if f := flag.Lookup("test.run"); status != 0 || f != nil && f.Value.String() != "" {
		return status
	}
	if f := flag.Lookup("test.list"); f != nil && f.Value.String() != "" {
		return status
	}
	names := slices.Collect(maps.Keys(own))
	for _, f := range sig.All() {
		if f.Alias == "" && f.Room == strings.TrimSuffix(name, "_test") && slices.ContainsFunc(f.Params, fromArrays) {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		fmt.Fprintf(os.Stderr, "package %s declares no ops\n", room)
		return 1
	}
	for _, name := range uncovered(names, elsewhere) {
		fmt.Fprintf(os.Stderr, "no optest.Run covers %s\n", name)
		status = 1
	}
	return status
}

// fromArrays reports whether a parameter takes arrays: functions without one have no derivatives, batches or layouts.
func fromArrays(p sig.Param) bool { return takesArray(&p) || p.Is(sig.KindArrays) }

func uncovered(names []string, elsewhere map[string]string) []string {
	var out []string
	for _, name := range names {
		_, full := covered.Load(name)
		_, last := covered.Load(name[strings.LastIndexByte(name, '.')+1:])
		if !full && !last && elsewhere[name] == "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
