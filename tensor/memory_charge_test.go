package tensor_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// charged is a holder whose arrays may take so many bytes, and contexts of its on two discrete devices.
func charged(t *testing.T, limit int64, opts ...metal.DeviceOptions) (a *metal.Account, devs [2]*metal.Device,
	c [2]*tensor.Ctx) {
	t.Helper()
	a = metal.NewAccount(limit, errors.New("that is all"))
	h := tensor.NewHolder(tensor.HolderLimits{Memory: a})
	opts = append(opts, metal.DeviceOptions{}, metal.DeviceOptions{})
	for i := range c {
		_, devs[i], c[i] = discrete(t, i, opts[i])
		c[i].Holder = h
	}
	return a, devs, c
}

// TestCopiesOnOtherDevicesAreCharged: to whom has caused them, as long as they are kept, whatever device they lie on.
func TestCopiesOnOtherDevicesAreCharged(t *testing.T) {
	const n = 100_000 // floats
	limit := int64(12 * 4 * n)
	a, devs, c := charged(t, limit)
	in := arrayOf(c[0], make([]float32, n))
	defer runtime.KeepAlive(in) // garbage would be charged until it is collected
	x := negOp.One(c[0], tensor.None{}, in)
	require.NoError(t, tensor.Eval(background, x))
	before, there := a.Used(), devs[1].Memory().Active
	y := negOp.One(c[1], tensor.None{}, x)
	require.NoError(t, tensor.Eval(background, y))
	require.GreaterOrEqual(t, a.Used()-before, int64(2*4*n), "the copy and the result")
	require.Equal(t, a.Used()-before, devs[1].Memory().Active-there)
	used := a.Used()
	require.NoError(t, tensor.Eval(background, negOp.One(c[1], tensor.None{}, slice(y, 0, 10, 1))))
	tensor.Drop(x)
	require.LessOrEqual(t, a.Used(), used-2*4*n+4096, "the array and its copy")

	bigIn := arrayOf(c[0], make([]float32, 3*n))
	defer runtime.KeepAlive(bigIn)
	big := negOp.One(c[0], tensor.None{}, bigIn)
	require.NoError(t, tensor.Eval(background, big))
	refused := negOp.One(c[1], tensor.None{}, big) // its copy has room, and it has not
	err := tensor.Eval(background, refused)
	require.ErrorIs(t, err, metal.ErrNoMemory)
	require.ErrorContains(t, err, "that is all")
	require.Equal(t, tensor.Lazy, refused.State())
	require.LessOrEqual(t, a.Used(), limit)
	require.NoError(t, tensor.Eval(background, negOp.One(on(c[1].Stream), tensor.None{}, y)), "others are not concerned")
}

// TestHostsCopiesAreCharged: what the host reads of a device's memory is charged while it is held, and refused where it
// has no room.
func TestHostsCopiesAreCharged(t *testing.T) {
	const n = 100_000
	a, _, c := charged(t, 5*4*n)
	in := arrayOf(c[0], make([]float32, n))
	defer runtime.KeepAlive(in)
	x := negOp.One(c[0], tensor.None{}, in)
	require.NoError(t, tensor.Eval(background, x))
	used := a.Used()
	_, _, release, err := x.HostView(background)
	require.NoError(t, err)
	require.Equal(t, int64(4*n), a.Used()-used)
	release()
	release()
	require.Equal(t, used, a.Used())
	y := negOp.One(c[0], tensor.None{}, x)
	require.NoError(t, tensor.Eval(background, y))
	var views []func()
	for err == nil {
		var release func()
		if _, _, release, err = y.HostView(background); err == nil {
			views = append(views, release)
		}
		require.LessOrEqual(t, a.Used(), a.Limit())
	}
	require.NotEmpty(t, views)
	require.ErrorIs(t, err, metal.ErrNoMemory)
	require.ErrorContains(t, err, "[item] [limits]")
	for _, end := range views {
		end()
	}
	_, _, release, err = y.HostView(background)
	require.NoError(t, err)
	release()
}

// detour is a device that copies to others by way of the host only.
type detour struct {
	metal.Driver
	account *metal.Account
	most    int64 // that was charged while it was read
}

func (d *detour) Read(dst []byte, mem metal.Memory, offset int64) error {
	d.most = max(d.most, d.account.Used())
	return d.Driver.Read(dst, mem, offset)
}

// TestDetoursAreCharged: memory of the host that bytes pass through on their way is charged for so long.
func TestDetoursAreCharged(t *testing.T) {
	const n = 1 << 20 // bytes
	account := metal.NewAccount(2*n+n/2, errors.New("that is all"))
	var bufs [2]*metal.Buffer
	var from *detour
	for i := range bufs {
		from = &detour{Driver: drivertest.NewDiscrete(soft.New(soft.Options{Hidden: true}), i), account: account}
		dev, err := metal.NewDevice(from, metal.DeviceOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		bufs[i], err = dev.AllocFor(background, n/2, &metal.Origin{Account: account})
		require.NoError(t, err)
		defer bufs[i].Release()
	}
	used := account.Used()
	require.NoError(t, bufs[0].CopyFrom(0, bufs[1].All()))
	require.Equal(t, used+n/2, from.most)
	require.Equal(t, used, account.Used())
	end, err := account.Reserve(n + n/4)
	require.NoError(t, err)
	require.ErrorIs(t, bufs[0].CopyFrom(0, bufs[1].All()), metal.ErrNoMemory)
	end()
	require.NoError(t, bufs[0].CopyFrom(0, bufs[1].All()))
}

// TestEachDeviceHasABudget: what is too much for one device is not for another, and its error names the former's limit;
// copies count there.
func TestEachDeviceHasABudget(t *testing.T) {
	const n = 1 << 18 // floats: 1 MiB
	_, devs, c := charged(t, 1<<40, metal.DeviceOptions{MemoryLimit: 64 << 20}, metal.DeviceOptions{MemoryLimit: 3 << 20})
	x := negOp.One(c[0], tensor.None{}, arrayOf(c[0], make([]float32, n)))
	y := negOp.One(c[0], tensor.None{}, arrayOf(c[0], make([]float32, n)))
	require.NoError(t, tensor.Eval(background, x, y))
	first := negOp.One(c[1], tensor.None{}, x)
	require.NoError(t, tensor.Eval(background, first))
	second := negOp.One(c[1], tensor.None{}, y)
	require.NoError(t, tensor.Eval(background, second), "x's copy is given up")
	third := negOp.One(c[1], tensor.None{}, x)
	err := tensor.Eval(background, third)
	require.ErrorIs(t, err, metal.ErrNoMemory)
	require.LessOrEqual(t, devs[1].Memory().Active, int64(3<<20))
	require.Equal(t, tensor.Lazy, third.State())
	require.NoError(t, tensor.Eval(background, negOp.One(c[0], tensor.None{}, y)), "the other device has room")
	tensor.Drop(first)
	require.NoError(t, tensor.Eval(background, third))
	runtime.KeepAlive(second)
}

// TestCopiesAreGivenUp: copies of other devices' arrays go where their device, or the account that they are charged to,
// is short of memory, those first that were read longest ago, and are made again when they are read.
func TestCopiesAreGivenUp(t *testing.T) {
	const n, size = 1 << 18, 1 << 20 // floats, and their bytes
	for name, limit := range map[string]int64{"a device": 1 << 40, "an account": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			most := int64(8 << 20)
			if limit < 1<<40 {
				most = 64 << 20
			}
			h := tensor.NewHolder(tensor.HolderLimits{Memory: metal.NewAccount(limit, errors.New("that is all"))})
			_, _, near := discrete(t, 0, metal.DeviceOptions{})
			drv, dev, there := discrete(t, 1, metal.DeviceOptions{MemoryLimit: most})
			near.Holder, there.Holder = h, h
			var far []*tensor.Array // 6 MiB on the first device
			for i := range 6 {
				x := arrayOf(near, slices.Repeat([]float32{float32(i)}, n))
				require.NoError(t, x.Err())
				far = append(far, x)
			}
			read := func(i int) {
				t.Helper()
				y := negOp.One(there, tensor.None{}, slice(far[i], 0, n, 1))
				require.NoError(t, tensor.Eval(background, y))
				require.Equal(t, float32(-i), floats(t, y)[n-1])
				tensor.Drop(y)
			}
			for i := range far {
				read(i)
			}
			read(0) // that of far[1] is the oldest now
			require.GreaterOrEqual(t, dev.Memory().Active, int64(6*size))
			moved := drv.Transfers().Peers
			read(5)
			require.Zero(t, drv.Transfers().Peers)
			require.Equal(t, 6, moved)

			var kept []*tensor.Array
			for range 4 { // 4 MiB beside 6 of copies
				y := negOp.One(there, tensor.None{}, arrayOf(there, make([]float32, n)))
				require.NoError(t, tensor.Eval(background, y))
				kept = append(kept, y)
			}
			require.LessOrEqual(t, dev.Memory().Active, most)
			drv.Transfers()
			read(5)
			require.Zero(t, drv.Transfers().Peers, "it was read last")
			read(1)
			require.Equal(t, 1, drv.Transfers().Peers, "it had been given up")
			runtime.KeepAlive(kept)
		})
	}
}
