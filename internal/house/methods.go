package house

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// maxMethods is how many methods a type may have: more are several responsibilities.
const maxMethods = 60

// manyMethods are the types that have more than maxMethods, with how many they may have. The list only shrinks: a
// number is that of today, and goes down with the type; a type that is small enough leaves the list. Nothing is added.
var manyMethods = map[string]int{
	"metal/msl.parser": 170,
}

// typeMethods is a type, as folder.name, and how many methods it has outside of tests and generated files.
type typeMethods struct {
	name  string
	count int
}

// countMethods gives the types with methods, those with most of them first. A method that each system has a file for
// counts once.
func countMethods(gos []goFile) []typeMethods {
	methods := map[string]map[string]bool{}
	for _, f := range gos {
		if f.isTest || strings.HasSuffix(f.base, "_gen.go") {
			continue
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || len(fn.Recv.List) == 0 {
				continue
			}
			receiver := receiverType(fn)
			if receiver == nil {
				continue
			}
			name := f.dir + "." + receiver.Name
			if methods[name] == nil {
				methods[name] = map[string]bool{}
			}
			methods[name][fn.Name.Name] = true
		}
	}
	var out []typeMethods
	for name, of := range methods {
		out = append(out, typeMethods{name, len(of)})
	}
	slices.SortFunc(out, func(a, b typeMethods) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.name, b.name))
	})
	return out
}

// checkMethods finds types with too many methods, and exceptions that are larger than they need be.
func checkMethods(gos []goFile, exceptions map[string]int) []string {
	var faults []string
	fault := func(format string, v ...any) { faults = append(faults, fmt.Sprintf(format, v...)) }
	counts := map[string]int{}
	for _, t := range countMethods(gos) {
		counts[t.name] = t.count
		bound, excepted := exceptions[t.name]
		switch {
		case !excepted && t.count > maxMethods:
			fault("%s has %d methods, at most %d: find the responsibilities that have state of their own, and make each "+
				"a type with its fields and methods that this one holds", t.name, t.count, maxMethods)
		case excepted && t.count > bound:
			fault("%s has %d methods, at most %d: put the new ones on a type of their own; the bounds in manyMethods "+
				"(internal/house/methods.go) only go down", t.name, t.count, bound)
		}
	}
	for _, name := range sortedKeys(exceptions) {
		switch bound, n := exceptions[name], counts[name]; {
		case n <= maxMethods:
			fault("%s has %d methods: well done; take its line out of manyMethods (internal/house/methods.go)", name, n)
		case n < bound:
			fault("%s has %d methods: well done; lower its bound from %d to %d in manyMethods (internal/house/methods.go)",
				name, n, bound, n)
		}
	}
	return faults
}
