package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mlxlua/mlxlua/docs"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// exampleHead begins the example of a function in the files of docs/examples, up to its full name.
const exampleHead = "## "

// readExamples reads the examples in a folder's files, by function. An example is what a REPL would show: lines of Lua
// behind "> ", or ">> " where an entry goes on, and below each entry what it gives.
func readExamples(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, part := range strings.Split("\n"+string(text), "\n"+exampleHead)[1:] {
			name, example, _ := strings.Cut(part, "\n")
			name = strings.TrimPrefix(name, "mx.")
			example = strings.TrimRight(example, "\n")
			switch {
			case out[name] != "":
				return nil, fmt.Errorf("%s: %s has two examples", file, docs.Full(name))
			case !strings.HasPrefix(example, "> "):
				return nil, fmt.Errorf("%s: the example of %s does not begin with \"> \"", file, docs.Full(name))
			}
			out[name] = example
		}
	}
	return out, nil
}

// exampleOf is the example of a function: its own one, or of a second name that of the first, under the second.
func exampleOf(examples map[string]string, name string) string {
	if own := examples[name]; own != "" {
		return own
	}
	op := sig.Lookup(name)
	if op == nil || op.Alias == "" {
		return ""
	}
	return strings.ReplaceAll(examples[op.Alias], "mx."+op.Alias+"(", "mx."+name+"(")
}
