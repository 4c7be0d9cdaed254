// Package docs holds the manual of mx's functions, which help() prints too.
package docs

import (
	_ "embed"
	"strings"
	"sync"
)

//go:generate sh -c "cd .. && go run ./internal/house/docsgen >docs/new.md && mv docs/new.md docs/reference.md"
//go:generate sh -c "cd .. && go test ./internal/house/docsgen -run CoveragePage -write"

//go:embed reference.md
var reference string

// What the manual's entries look like: a heading, and in a block the usage on one line and the text.
const (
	heading = "\n### mx."
	opening = "\n\n```text\n"
	closing = "\n```\n"
)

var texts = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split(reference, heading)[1:] {
		name, rest, _ := strings.Cut(part, opening)
		text, _, _ := strings.Cut(rest, closing)
		_, text, _ = strings.Cut(text, "\n") // the usage
		out[name] = text
	}
	return out
})

// Help is what the manual says of a function, "softmax" or "random.normal", or "".
func Help(name string) string { return texts()[name] }

// Entry is a function's place in the manual, from its usage and its text.
func Entry(name, usage, text string) string {
	return heading + name + opening + usage + "\n" + text + closing
}
