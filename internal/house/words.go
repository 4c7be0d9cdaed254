package house

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The patterns are put together from halves so that this file passes its own check.
var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b|(?i:\bfor ` + `now\b)`)
	foreign    = regexp.MustCompile(strings.Join([]string{
		`(?:^|[^\w./~-])(/(?:work|root|home|Users|mnt|opt)/[\w.-]+)`, // somebody's folders
		`(/tmp/[\w.-]+)`,
		`\b([A-Z]:\\\w+)`,
		`\b((?:proxy|sum)\.go` + `lang\.org|py` + `pi\.org|python` + `hosted\.org|npm` + `js\.org|crates` + `\.io)\b`,
	}, "|"))
)

// checkWords finds marks of unfinished work in code, and paths and hosts of one machine anywhere in the tree.
func checkWords(texts []textFile) []string {
	var faults []string
	for _, f := range texts {
		code := isCode(f.path)
		for i, line := range strings.Split(f.text, "\n") {
			if word := unfinished.FindString(line); code && word != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %q marks unfinished work", f.path, i+1, word))
			}
			if where := foreign.FindString(line); where != "" && !strings.HasPrefix(line, "#!") {
				faults = append(faults, fmt.Sprintf("%s:%d: %q belongs to one machine", f.path, i+1,
					strings.TrimSpace(where)))
			}
		}
	}
	return faults
}

func isCode(name string) bool {
	switch path.Ext(name) {
	case ".go", ".metal", ".lua", ".py", ".sh", ".s":
		return true
	}
	return strings.HasPrefix(name, ".ci/")
}
