// Package docs holds the manual of mx's functions, which help() prints too.
package docs

import (
	"embed"
	"io/fs"
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
	heading = "\n## mx."
	opening = "\n\n```text\n"
	closing = "\n```\n"
)

var texts = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
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
			_, text, _ = strings.Cut(text, "\n") // the usage
			out[name] = text
		}
	}
	return out
})

// Help is what the manual says of a function, "softmax" or "random.normal", or "".
func Help(name string) string { return texts()[name] }

// Entry is a function's place in the manual, from its usage and its text.
func Entry(name, usage, text string) string {
	return heading + name + opening + usage + "\n" + text + closing
}
