package metal_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// TestAccounts: buffers count for the account that their origin names, until they are released or assigned to another
// one; what does not fit is refused, and nobody else's allocations are.
func TestAccounts(t *testing.T) {
	full := errors.New("full")
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{})
	a, b := metal.NewAccount(1<<20, full), metal.NewAccount(1<<30, full)
	first, err := d.AllocFor(t.Context(), 600<<10, &metal.Origin{Account: a})
	require.NoError(t, err)
	require.GreaterOrEqual(t, a.Used(), int64(600<<10))
	_, err = d.AllocFor(t.Context(), 600<<10, &metal.Origin{Account: a})
	require.ErrorIs(t, err, full)
	require.ErrorIs(t, err, metal.ErrNoMemory)
	second, err := d.AllocFor(t.Context(), 600<<10, &metal.Origin{Account: b})
	require.NoError(t, err)
	require.False(t, second.Assign(&metal.Origin{Account: a}))
	require.True(t, first.Assign(&metal.Origin{Account: b}))
	require.Zero(t, a.Used())
	require.True(t, second.Assign(&metal.Origin{Account: a}))
	second.SetOrigin(metal.Origin{})
	require.Zero(t, a.Used())
	first.Release()
	second.Release()
	require.Zero(t, b.Used())
}

// TestAccountsCollect: an allocation past its account has garbage collected, as one past the device's limit.
func TestAccountsCollect(t *testing.T) {
	var garbage *metal.Buffer
	collections := 0
	d := open(t, drivertest.NewFake(), metal.DeviceOptions{Collect: func() {
		if collections++; collections == 1 {
			garbage.Release()
		}
	}})
	a := metal.NewAccount(1<<20, errors.New("full"))
	var err error
	garbage, err = d.AllocFor(t.Context(), 600<<10, &metal.Origin{Account: a})
	require.NoError(t, err)
	owner := new([1]byte)
	other, err := d.Alloc(t.Context(), 16)
	require.NoError(t, err)
	metal.OwnedBy(owner, other) // there is something to collect
	got, err := d.AllocFor(t.Context(), 600<<10, &metal.Origin{Account: a})
	require.NoError(t, err)
	require.Equal(t, 1, collections)
	got.Release()
	require.NotNil(t, owner)
}
