package house

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's root folder.
const root = "../.."

// module reads the tree once for all tests.
func module(t *testing.T) ([]textFile, []goFile) {
	t.Helper()
	texts, gos, err := readTree(os.DirFS(root))
	require.NoError(t, err)
	require.NotEmpty(t, gos, "found no Go files: is the module's root still %s?", root)
	return texts, gos
}

func noFaults(t *testing.T, faults []string) {
	t.Helper()
	if len(faults) > 0 {
		t.Errorf("%d faults:\n%s", len(faults), strings.Join(faults, "\n"))
	}
}

func TestImportLaw(t *testing.T) {
	l, err := parseLaw(lawText)
	require.NoError(t, err)
	_, gos := module(t)
	noFaults(t, checkImports(l, modulePath, gos))
}

func TestSizes(t *testing.T) { noFaults(t, checkSizes(module(t))) }

// TestMethods bounds the methods of types; go test ./internal/house -run Methods -v prints the table of the largest.
func TestMethods(t *testing.T) {
	_, gos := module(t)
	var table strings.Builder
	for _, m := range countMethods(gos) {
		if 3*m.count >= maxMethods {
			fmt.Fprintf(&table, "\n%6d  %s", m.count, m.name)
		}
	}
	t.Logf("methods of types, from %d on:%s", maxMethods/3, table.String())
	noFaults(t, checkMethods(gos))
}

// TestParallel: the tests of slow rooms run beside each other, but for those that say why not.
func TestParallel(t *testing.T) {
	_, gos := module(t)
	noFaults(t, checkParallel(gos, parallelRooms))
}

func TestDocs(t *testing.T) {
	_, gos := module(t)
	noFaults(t, checkDocs(gos))
}

func TestWords(t *testing.T) {
	if testing.Short() {
		t.Skip("two patterns over every line of the tree are slow under the race detector, which learns nothing from them")
	}
	texts, _ := module(t)
	noFaults(t, checkWords(texts))
}

func TestGenerated(t *testing.T) {
	texts, _ := module(t)
	noFaults(t, checkGenerated(os.DirFS(root), texts, func(args []string) (string, error) {
		cmd := exec.Command("go", append([]string{"run"}, args...)...)
		cmd.Dir = root
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%w\n%s", err, stderr.String())
		}
		return string(out), nil
	}))
}

// TestLinks follows every relative link of the documents.
func TestLinks(t *testing.T) {
	texts, _ := module(t)
	code := regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	followed := 0
	for _, f := range texts {
		if filepath.Ext(f.path) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(f.text, ""), -1) {
			followed++
			_, err := os.Stat(filepath.Join(root, filepath.Dir(f.path), m[1]))
			require.NoError(t, err, "%s links to %s", f.path, m[1])
		}
	}
	require.Positive(t, followed)
}

// TestWhys: RATIONALE.md lists the questions of all rooms.
func TestWhys(t *testing.T) {
	texts, _ := module(t)
	noFaults(t, checkWhys(texts))
}

// TestHolds: no Go code keeps a Lua value or an array where a state's looks do not come to it.
func TestHolds(t *testing.T) {
	pkgs, err := loadTyped(root, "luabind", "luabind/lua51", "luabind/reach")
	require.NoError(t, err)
	noFaults(t, checkHolds(pkgs, heldCode))
}
