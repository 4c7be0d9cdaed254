package house

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// law is a parsed lawText.
type law struct {
	groups  map[string][]string        // group -> patterns
	allowed map[string]map[string]bool // importer group -> imported groups
	never   [][2]string                // imported, importer
}

// tests is the pseudo-group of all test files.
const tests = "TESTS"

// parseLaw reads rules in the notation described at lawText. It refuses unknown groups, groups that are defined twice,
// cycles among groups, and rules that contradict a wall.
func parseLaw(text string) (*law, error) {
	l := &law{groups: map[string][]string{}, allowed: map[string]map[string]bool{}}
	type statement struct {
		line int
		text string
	}
	var rules []statement
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		name, patterns, isGroup := strings.Cut(line, "=")
		switch {
		case line == "":
		case isGroup:
			name = strings.TrimSpace(name)
			if _, twice := l.groups[name]; twice {
				return nil, fmt.Errorf("law line %d: group %s is defined twice", i+1, name)
			}
			l.groups[name] = list(patterns)
		case strings.Contains(line, "<"):
			rules = append(rules, statement{i + 1, line})
		default:
			return nil, fmt.Errorf("law line %d: neither a group nor a rule: %s", i+1, line)
		}
	}
	for _, r := range rules {
		if err := l.addRule(r.text); err != nil {
			return nil, fmt.Errorf("law line %d: %w", r.line, err)
		}
	}
	return l, l.check()
}

func (l *law) addRule(text string) error {
	if a, b, ok := strings.Cut(text, "!<"); ok {
		for _, imported := range list(a) {
			for _, importer := range list(b) {
				l.never = append(l.never, [2]string{imported, importer})
			}
		}
	} else {
		sets := strings.Split(text, "<")
		for i, importers := range sets {
			for _, importer := range list(importers) {
				for _, lower := range sets[:i] {
					for _, imported := range list(lower) {
						l.allow(imported, importer)
					}
				}
			}
		}
	}
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("<!, \t", r) }) {
		if _, ok := l.groups[strings.TrimSuffix(name, "_test")]; !ok && name != tests {
			return fmt.Errorf("unknown group %s", name)
		}
	}
	return nil
}

func (l *law) allow(imported, importer string) {
	if l.allowed[importer] == nil {
		l.allowed[importer] = map[string]bool{}
	}
	l.allowed[importer][imported] = true
}

// check finds contradictions and cycles.
func (l *law) check() error {
	for _, wall := range l.never {
		if l.allowed[wall[1]][wall[0]] {
			return fmt.Errorf("law: %s may import %s by one rule and never by another", wall[1], wall[0])
		}
	}
	const inProgress, done = 1, 2
	state := map[string]int{}
	var visit func(group string, trail []string) error
	visit = func(group string, trail []string) error {
		trail = append(trail, group)
		switch state[group] {
		case done:
			return nil
		case inProgress:
			return fmt.Errorf("law: cycle %s", strings.Join(trail, " > "))
		}
		state[group] = inProgress
		for _, next := range sortedKeys(l.allowed[group]) {
			if err := visit(next, trail); err != nil {
				return err
			}
		}
		state[group] = done
		return nil
	}
	for _, group := range sortedKeys(l.groups) {
		if err := visit(group, nil); err != nil {
			return err
		}
	}
	return nil
}

// groupsOf gives the groups that hold name, which is a folder, a file or an import path of another module.
func (l *law) groupsOf(name string) []string {
	var out []string
	for _, group := range sortedKeys(l.groups) {
		if slices.ContainsFunc(l.groups[group], func(p string) bool { return matches(p, name) }) {
			out = append(out, group)
		}
	}
	return out
}

func matches(pattern, name string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == below || strings.HasPrefix(name, below+"/")
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// mayImport reports whether the law lets file (in dir) import target, a folder of the module or another import path.
func (l *law) mayImport(dir, file, target string, isTest bool) bool {
	importers := slices.Concat(l.groupsOf(dir), l.groupsOf(path.Join(dir, file)))
	if isTest {
		for _, g := range slices.Clone(importers) {
			importers = append(importers, g+"_test")
		}
		importers = append(importers, tests)
	}
	for _, imported := range l.groupsOf(target) {
		if slices.ContainsFunc(importers, func(g string) bool { return g == imported || l.allowed[g][imported] }) {
			return true
		}
	}
	return false
}

// checkImports judges every Go file of the tree, of all systems and build tags.
func checkImports(l *law, module string, files []goFile) []string {
	var faults []string
	lost := map[string]bool{}
	for _, f := range files {
		if len(l.groupsOf(f.dir)) == 0 && !lost[f.dir] {
			lost[f.dir] = true
			faults = append(faults, fmt.Sprintf("%s: the package is in no group of the law", f.dir))
		}
		for _, imp := range f.imports {
			target, fenced := imp, len(l.groupsOf(imp)) > 0
			if imp == module {
				target, fenced = ".", true
			} else if inside, ok := strings.CutPrefix(imp, module+"/"); ok {
				target, fenced = inside, true
			} else if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") {
				fenced = true // another module: allowed only by name
			}
			if fenced && !l.mayImport(f.dir, f.base, target, f.isTest) {
				faults = append(faults, fmt.Sprintf("%s: may not import %s", path.Join(f.dir, f.base), imp))
			}
		}
	}
	return faults
}

func list(s string) []string {
	var out []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
