package lua51

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// Whatever may make something for a script makes it by what made.go has, where it is charged. Who makes something for
// a state as a whole, once, may do so otherwise: the list says who.
func TestOnePlaceMakes(t *testing.T) {
	once := map[string]int{ // uses by file
		"concat.go": 2, "conditions.go": 1, "coroutines.go": 1, "embedded.go": 2, "fold.go": 2, "modules.go": 1,
		"protect.go": 1, "roots.go": 1, "state.go": 2,
		"../library.go": 1,
	}
	raw := regexp.MustCompile(`\bL\.(NewTable|CreateTable|NewUserData|NewClosure|NewFunction)\(|` +
		`&lua\.L(UserData|Function)\{`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	more, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	for _, name := range append(files, more...) {
		if strings.HasSuffix(name, "_test.go") || name == "made.go" {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		found := raw.FindAllString(string(text), -1)
		require.Len(t, found, once[name], "%s makes values itself: %v; see made.go", name, found)
	}
}

// An empty table's first key takes room for few keys: gopher-lua's own constructors make room for 32.
func TestEmptyConstructorsMakeRoomForFewKeys(t *testing.T) {
	proto, err := Compile(strings.NewReader("local a, b, c = {}, {1}, {x = 1} return function() return {} end"), "room")
	require.NoError(t, err)
	var keys []int
	eachPrototype(proto, func(p *lua.FunctionProto) {
		for _, code := range p.Code {
			if in := decode(code); in.op == lua.OP_NEWTABLE {
				keys = append(keys, in.c)
			}
		}
	})
	require.Equal(t, []int{1, 0, 1, 1}, keys)
}
