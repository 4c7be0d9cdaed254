package lua51

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// table.remove takes the last element, not the last slot, and nothing before the first: what Lua 5.1 answers.
func TestTableRemove(t *testing.T) {
	_, err := run(newTestState(t), `
		local t = {1, 2, 3}
		t[3] = nil
		assert(table.remove(t) == 2 and #t == 1 and t[2] == nil)
		t = {1, 2, 3, 4, 5}
		t[5], t[4] = nil, nil
		assert(table.remove(t, 1) == 1 and #t == 2 and t[1] == 2 and t[2] == 3 and t[3] == nil)
		assert(select("#", table.remove(t, 0)) == 0 and select("#", table.remove(t, 3)) == 0 and #t == 2)
		assert(table.remove(t, 2) == 3 and table.remove(t, 1) == 2 and #t == 0)
		assert(select("#", table.remove(t)) == 0 and select("#", table.remove({})) == 0)
		for i = 1, 9 do t[i] = i end
		for i = 9, 1, -1 do assert(table.remove(t) == i) end
		assert(#t == 0)
		assert(not pcall(table.remove, 1))`, "remove")
	require.NoError(t, err)
}
