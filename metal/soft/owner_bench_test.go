package soft

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

// BenchmarkOwners allocates and frees memory that its owner has had before, or another one.
func BenchmarkOwners(b *testing.B) {
	a, other := metal.NewOwner(), metal.NewOwner()
	for _, n := range []int64{1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20} {
		dev, err := metal.NewDevice(New(Options{}), metal.DeviceOptions{CacheLimit: 1 << 30})
		require.NoError(b, err)
		dev.SetValidate(false)
		run := func(name string, alloc func(context.Context, int64, *metal.Origin) (*metal.Buffer, error),
			owners ...metal.Owner) {
			b.Run(fmt.Sprintf("%s/%dKiB", name, n>>10), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					buf, err := alloc(context.Background(), n, &metal.Origin{Owner: owners[i%len(owners)]})
					if err != nil {
						b.Fatal(err)
					}
					buf.Release()
				}
			})
		}
		run("same", dev.AllocFor, a)
		run("other", dev.AllocFor, a, other)
		run("other, filled", dev.AllocToFill, a, other)
		require.NoError(b, dev.Close())
	}
}
