package house

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
	"unicode/utf8"
)

// limits of docs/architecture.md.
const (
	maxGoLines    = 800
	maxFuncLines  = 120
	maxMetalLines = 400
	maxModelLines = 300 // of the scripts in scripts/lm, which users read and copy
	maxColumns    = 120
)

// checkSizes finds files, functions and lines that are too long. A tab counts as one column.
func checkSizes(texts []textFile, gos []goFile) []string {
	var faults []string
	for _, f := range texts {
		ext := path.Ext(f.path)
		if ext != ".go" && ext != ".metal" && ext != ".lua" || isTestData(f.path) {
			continue
		}
		generated := strings.HasSuffix(f.path, "_gen.go")
		lines := splitLines(f.text)
		limit := map[string]int{".go": maxGoLines, ".metal": maxMetalLines}[ext]
		if ext == ".lua" && strings.HasPrefix(f.path, "scripts/lm/") {
			limit = maxModelLines
		}
		if limit > 0 && len(lines) > limit && !generated {
			faults = append(faults, fmt.Sprintf("%s: %d lines, at most %d", f.path, len(lines), limit))
		}
		for i, line := range lines {
			if n := utf8.RuneCountInString(line); n > maxColumns && !generated {
				faults = append(faults, fmt.Sprintf("%s:%d: %d columns, at most %d", f.path, i+1, n, maxColumns))
			}
		}
	}
	for _, f := range gos {
		if strings.HasSuffix(f.base, "_gen.go") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				return true
			}
			if lines := functionLines(f, fn); lines > maxFuncLines {
				faults = append(faults, fmt.Sprintf("%s: function %s has %d lines, at most %d",
					f.fset.Position(fn.Pos()), fn.Name.Name, lines, maxFuncLines))
			}
			return true
		})
	}
	return faults
}

// functionLines counts the lines of a function without those of tables: literals of slices, maps and structs without
// functions in them, and switch clauses of a single line.
func functionLines(f goFile, fn *ast.FuncDecl) int {
	line := func(n ast.Node) (first, last int) {
		return f.fset.Position(n.Pos()).Line, f.fset.Position(n.End()).Line
	}
	first, last := line(fn)
	total := last - first + 1
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if holdsFunction(n) {
				return true
			}
			first, last := line(n)
			total -= last - first
			return false
		case *ast.CaseClause:
			if len(n.Body) != 1 {
				return true
			}
			first, last := line(n.Body[0])
			if first == last {
				clause, _ := line(n)
				total -= last - clause + 1
				return false
			}
		}
		return true
	})
	return total
}

func holdsFunction(n ast.Node) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		_, is := n.(*ast.FuncLit)
		found = found || is
		return !found
	})
	return found
}

func isTestData(name string) bool { return strings.Contains("/"+name, "/testdata/") }
