package optest

import (
	"flag"
	"fmt"
	"os"
	"slices"
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

// Main runs a package's tests and fails if a declared op was covered by none of them, unless another place covers
// it: elsewhere says which, by the op's name. It is for TestMain, and gives the exit status. Where -run selects
// tests, only those decide.
func Main(m *testing.M, elsewhere map[string]string) int {
	status := m.Run()
	if f := flag.Lookup("test.run"); status != 0 || f != nil && f.Value.String() != "" {
		return status
	}
	if f := flag.Lookup("test.list"); f != nil && f.Value.String() != "" {
		return status
	}
	for _, name := range uncovered(tensor.Ops(), elsewhere) {
		fmt.Fprintf(os.Stderr, "no optest.Run covers the op %s\n", name)
		status = 1
	}
	return status
}

// ofTransforms are the identities that transforms use: the tests of package grad cover them.
var ofTransforms = map[string]bool{"watch": true, "custom_function": true, "recompute": true}

func uncovered(ops map[string]*tensor.Op, elsewhere map[string]string) []string {
	var out []string
	for name := range ops {
		if _, ok := covered.Load(name); !ok && elsewhere[name] == "" && !ofTransforms[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
