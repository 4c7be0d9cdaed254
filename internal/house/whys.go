package house

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	whyHeading = regexp.MustCompile(`(?m)^#{2,3} (.+\?)$`)
	whyLink    = regexp.MustCompile(`(?m)^- \[(.+)\]\((\S+)/WHY\.md#(\S+)\)$`)
)

// checkWhys finds questions of the rooms' WHY.md files that the list in RATIONALE.md lacks, and entries of that list
// that lead nowhere.
func checkWhys(texts []textFile) []string {
	var asked, listed []string
	for _, f := range texts {
		switch {
		case f.path == "RATIONALE.md":
			for _, m := range whyLink.FindAllStringSubmatch(f.text, -1) {
				listed = append(listed, fmt.Sprintf("%s: %s", m[2], m[1]))
				if anchor(m[1]) != m[3] {
					listed[len(listed)-1] += " (its anchor is " + anchor(m[1]) + ")"
				}
			}
		case path.Base(f.path) == "WHY.md":
			for _, m := range whyHeading.FindAllStringSubmatch(f.text, -1) {
				asked = append(asked, fmt.Sprintf("%s: %s", path.Dir(f.path), m[1]))
			}
		}
	}
	var faults []string
	for _, q := range asked {
		if !slices.Contains(listed, q) {
			faults = append(faults, "RATIONALE.md does not list "+q)
		}
	}
	for _, q := range listed {
		if !slices.Contains(asked, q) {
			faults = append(faults, "RATIONALE.md lists what is not there: "+q)
		}
	}
	return faults
}

// anchor is how a link names a heading: in lower case, without punctuation, with - for a blank.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
