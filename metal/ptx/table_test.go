package ptx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// TestEveryOperation prints every operation of kir's table on every type that it takes, for every target, and has it
// assembled; without -ptx.all, those between lanes take turns. An operation that kir gets and no case has fails here.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	seen := map[kir.Op]bool{}
	cases := tableCases()
	for _, c := range cases {
		require.NoError(t, c.k.Verify(), c.name)
		c.k.Body.Walk(func(in *kir.Instr) { seen[in.Op] = true })
	}
	for _, op := range ops() {
		require.True(t, seen[op], "no case has %s", op)
	}
	for turn, sm := range ptx.Targets() {
		t.Run(name(sm), func(t *testing.T) {
			var texts []*ptx.Text
			for i, c := range cases {
				k := *c.k
				k.Name = fmt.Sprint(k.Name, " ", i)
				text, err := ptx.Print(&k, ptx.Options{SM: sm})
				require.NoError(t, err, c.name)
				if *all || !strings.HasPrefix(c.name, "group") || i%23 == turn {
					texts = append(texts, text)
				}
			}
			module, err := ptx.Module(texts...)
			require.NoError(t, err)
			assemble(t, module, sm)
		})
	}
}
