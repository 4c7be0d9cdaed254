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
)

var covered sync.Map

func cover(op Subject) {
	if op.Ops == nil {
		covered.Store(op.Name, true)
	}
	for _, p := range op.Ops {
		covered.Store(p, true)
	}
}

// Main runs a package's tests and fails if an op that the package declares was covered by none of them, unless another
// place covers it: elsewhere says which, by the op's name. It is for TestMain, and gives the exit status. Where -run
// selects tests, only those decide.
func Main(m *testing.M, elsewhere map[string]string) int {
	pc, _, _, _ := runtime.Caller(1)
	caller := runtime.FuncForPC(pc).Name()
	folder := strings.LastIndex(caller, "/") + 1
	name, _, _ := strings.Cut(caller[folder:], ".")
	room := caller[:folder] + strings.TrimSuffix(name, "_test")
	own := tensor.Ops()
	maps.DeleteFunc(own, func(_ string, op *tensor.Op) bool { return op.Package() != room })
	if len(own) == 0 {
		fmt.Fprintf(os.Stderr, "package %s declares no ops\n", room)
		return 1
	}
	status := m.Run()
	if f := flag.Lookup("test.run"); status != 0 || f != nil && f.Value.String() != "" {
		return status
	}
	if f := flag.Lookup("test.list"); f != nil && f.Value.String() != "" {
		return status
	}
	for _, name := range uncovered(own, elsewhere) {
		fmt.Fprintf(os.Stderr, "no optest.Run covers the op %s\n", name)
		status = 1
	}
	return status
}

func uncovered(ops map[string]*tensor.Op, elsewhere map[string]string) []string {
	var out []string
	for name := range ops {
		if _, ok := covered.Load(name); !ok && elsewhere[name] == "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
