package house

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// parallelRooms are the rooms whose tests take long. A test there begins with t.Parallel(), or calls serial.Because,
// itself or by a helper. Setenv and Chdir of package testing do as well: they panic in a parallel test too.
var parallelRooms = []string{".", "luabind", "tensor/ops", "metal/msl", "metal/jit", "metal/interp", "metal/ptx",
	"text/tokenizer"}

// processWide are functions that set or measure what belongs to the process. A test that reaches one is serial.
var processWide = []string{"tensor.SetDevice", "tensor.SetFusion", "tensor.CheckNaN", "compile.Disable",
	"runtime.ReadMemStats", "runtime.GOMAXPROCS", "runtime.NumGoroutine", "debug.SetGCPercent", "debug.SetMemoryLimit",
	"testing.AllocsPerRun"}

// checkParallel finds tests of the rooms that neither run beside others nor say why not.
func checkParallel(gos []goFile, rooms []string) []string {
	var faults []string
	for _, room := range rooms {
		calls := map[string][]string{} // by function, "f" or ".method": what it names
		var tests []string
		for _, f := range gos {
			if f.dir != room || !f.isTest {
				continue
			}
			for _, decl := range f.syntax.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				name := fn.Name.Name
				if fn.Recv != nil {
					name = "." + name
				}
				calls[name] = append(calls[name], named(fn.Body)...)
				if strings.HasPrefix(name, "Test") && name != "TestMain" {
					tests = append(tests, name)
				}
			}
		}
		slices.Sort(tests)
		for _, test := range tests {
			reached := reach(calls, test)
			serial := reached["serial.Because"] || reached[".Setenv"] || reached[".Chdir"]
			if !serial && !slices.Contains(calls[test], ".Parallel") {
				faults = append(faults, fmt.Sprintf("%s: %s neither calls t.Parallel nor serial.Because", room, test))
			}
			for _, f := range processWide {
				if reached[f] && !serial {
					faults = append(faults, fmt.Sprintf("%s: %s reaches %s without serial.Because", room, test, f))
				}
			}
		}
	}
	return faults
}

// named gives the functions that a body may call: "f", and of a selector x.f both "x.f" and ".f".
func named(n ast.Node) (out []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			out = append(append(out, "."+n.Sel.Name), named(n.X)...)
			if x, ok := n.X.(*ast.Ident); ok {
				out = append(out, x.Name+"."+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			out = append(out, n.Name)
		}
		return true
	})
	return out
}

// reach gives all that a function of the package names, also by the functions that it calls.
func reach(calls map[string][]string, from string) map[string]bool {
	reached := map[string]bool{}
	todo := []string{from}
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, callee := range calls[name] {
			if !reached[callee] {
				reached[callee] = true
				todo = append(todo, callee)
			}
		}
	}
	return reached
}
