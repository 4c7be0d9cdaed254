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

// checkMethods finds types with too many methods.
func checkMethods(gos []goFile) []string {
	var faults []string
	for _, t := range countMethods(gos) {
		if t.count > maxMethods {
			faults = append(faults, fmt.Sprintf("%s has %d methods, at most %d: find the responsibilities that have state of "+
				"their own, and make each a type with its fields and methods that this one holds", t.name, t.count, maxMethods))
		}
	}
	return faults
}
