// Package house enforces the design: who may import whom, how long files and functions are, that exports are
// documented, that generated files are what their generators make, and that no unfinished work or foreign path is left
// in the tree. Each checker is a function from a tree of files to a list of faults; its own test breaks every wall on
// purpose.
package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// textFile is a file of the tree that people write.
type textFile struct {
	path string
	text string
}

// goFile is a parsed Go file, whatever system or build tag it is for.
type goFile struct {
	dir, base string
	isTest    bool
	imports   []string
	syntax    *ast.File
	fset      *token.FileSet
	text      string
}

// readTree gives all text files but git's and those in folders whose name starts with a dot other than .ci, and the
// Go files among them that are not test data.
func readTree(tree fs.FS) (texts []textFile, gos []goFile, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && name != "." && name != ".ci" {
				return fs.SkipDir
			}
			return nil
		}
		if name == ".git" { // in a work tree of its own it is a file that names a folder of the machine
			return nil
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if strings.IndexByte(string(data), 0) >= 0 {
			return nil // not text
		}
		texts = append(texts, textFile{name, string(data)})
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			return nil
		}
		f, err := parseGo(name, string(data))
		if err != nil {
			return err
		}
		gos = append(gos, f)
		return nil
	})
	return texts, gos, err
}

func parseGo(name, text string) (goFile, error) {
	f := goFile{dir: path.Dir(name), base: path.Base(name), text: text, fset: token.NewFileSet()}
	f.isTest = strings.HasSuffix(f.base, "_test.go")
	var err error
	f.syntax, err = parser.ParseFile(f.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	for _, spec := range f.syntax.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		f.imports = append(f.imports, imp)
	}
	return f, nil
}
