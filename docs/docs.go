// Package docs holds the manual of mx's functions and of the packages that come with the program, which help() prints
// too.
package docs

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:generate sh -c "cd .. && go run ./internal/house/docsgen -write docs/manual"
//go:generate sh -c "cd .. && go test ./internal/house/docsgen -run CoveragePage -write"

//go:embed manual/*.md
var manual embed.FS

// What the manual's entries look like: a heading, and in a block the usage on one line and the text, which ends with an
// example.
const (
	heading = "\n## "
	opening = "\n\n```text\n"
	closing = "\n```\n"
)

// packages are what the names of functions begin with that are not mx's.
var packages = []string{"lm."}

// Full is a function's name as scripts write it: mx.softmax for "softmax", lm.load for "lm.load".
func Full(name string) string {
	if slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return name
	}
	return "mx." + name
}

type entry struct{ usage, text string }

var entries = sync.OnceValue(func() map[string]entry {
	out := map[string]entry{}
	pages, err := fs.Glob(manual, "manual/*.md")
	if err != nil {
		panic(err)
	}
	for _, p := range pages {
		page, err := manual.ReadFile(p)
		if err != nil {
			panic(err)
		}
		for _, part := range strings.Split(string(page), heading)[1:] {
			name, rest, _ := strings.Cut(part, opening)
			text, _, _ := strings.Cut(rest, closing)
			usage, text, _ := strings.Cut(text, "\n")
			out[name] = entry{usage, text}
		}
	}
	return out
})

// Help is what the manual says of a function, "softmax", "random.normal" or "lm.load", or "".
func Help(name string) string { return entries()[Full(name)].text }

// Usage is how a function is called, by the manual, or "".
func Usage(name string) string { return entries()[Full(name)].usage }

// Package lists the functions of a package, "lm", whose names hold a text in lower case, sorted.
func Package(name, text string) (names []string) {
	for full := range entries() {
		if strings.HasPrefix(full, name+".") && strings.Contains(strings.ToLower(full), text) {
			names = append(names, full)
		}
	}
	slices.Sort(names)
	return names
}

// Entry is a function's place in the manual, from its usage and its text.
func Entry(name, usage, text string) string {
	return heading + Full(name) + opening + usage + "\n" + text + closing
}
