package lua51

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What stands in a text one after the other nests nothing, however long it is.
func TestLongTextsThatAreNotNested(t *testing.T) {
	for _, line := range []string{
		"x = a .. b .. -c ^ -d\n", "f(a .. b, #c, not d)\n", "t[#t + 1] = -x - -y * -z\n", "local a = 'x' .. y\n",
		"if a .. b == c then x = -1 elseif not d then y = -2 else z = #a end\n", "for i = -1, -2, -3 do x = a .. b end\n",
		"for k in a .. b do f{-1, a .. b; #c, [-x] = y ^ 2, z = not w} end\n", "repeat x = -y until a .. b\n",
		"while not a do x = function(...) return -x, a .. b end end\n", "x = -1 + -1 < -1 and a .. b or #c .. -d\n",
		"-- (((( do function\n", "x = '((((' y = [[ {{{{ ]]\n", "local function f() return ... end\n", "do break end\n",
		"a.b:c(-x).d = -y\n", "do goto done x = a .. b ::done:: end\n",
	} {
		require.NoError(t, nestedTooDeep(context.Background(), strings.Repeat(line, 2*maxNesting), "long"), line)
	}
	require.NoError(t, nestedTooDeep(context.Background(), strings.Repeat(") end } ", 100)+"= ' (", "wrong"))
	terms := "x = a" + strings.Repeat(" + -b", 3*maxNesting) + strings.Repeat(" * 2 ^ c", 3*maxNesting)
	require.NoError(t, nestedTooDeep(context.Background(), terms, "terms"))
	deep := strings.Repeat("\n", 4) + strings.Repeat("(", maxNesting)
	require.NoError(t, nestedTooDeep(context.Background(), deep, "deep"))
	require.EqualError(t, nestedTooDeep(context.Background(), deep+"(", "deep"),
		"deep:5: chunk is nested more than 10000 levels deep")
}
