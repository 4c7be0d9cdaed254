package ops

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

var (
	//go:embed select.metal
	selectText    string
	selectKernels = kit.NewKernels[selectVariant](digitsText + selectText)
)

// selectVariant is the dtype of keys, and whether their places are kept instead.
type selectVariant struct {
	keys  tensor.DType
	index bool
}

// Macros defines the type of keys and their order.
func (v selectVariant) Macros() string { return orderMSL(v.keys) }

// keptPlaces is what is kept of a row in order: count keys from place from on.
type keptPlaces struct{ from, count int }

// arg binds the window of rows of n keys to a kernel's Window.
func (w keptPlaces) arg(n int) tensor.Arg { return kit.Params{}.Uint(n, w.from, w.count).Arg() }

// fewKeys reports whether rows of n keys are so short that counting for each key those before it, which sorts them,
// takes no longer than a search.
func fewKeys(n int) bool { return n <= 128 }

// selectRows finds the key at place kth of the order of each row of keys and puts the window w, which includes the
// place, into out, or the keys' places in their rows (index): those before that key, those equal to it, then those
// after it, each kind in the row's order. Rows of few keys are sorted. Nothing is empty.
func selectRows(r *tensor.Run, keys tensor.Operand, kth int, w keptPlaces, index bool, out tensor.Operand) error {
	rows, n, err := kit.RowsOf(keys.Shape)
	if err != nil {
		return err
	}
	if fewKeys(n) {
		return rankRows(r, keys, w, index, out)
	}
	v := selectVariant{keys: keys.DType, index: index}
	length, chunks := chunked(r, rows, n)
	params := func(shift int) tensor.Arg {
		return kit.Params{}.Uint(n, length, chunks, kth, w.from, w.count, shift).Arg()
	}
	if chunks == 1 {
		return selectKernels.Launch(r, v, "select_rows", kit.Simds(rows, 1, 1), keys.Arg(), out.Arg(), params(0))
	}
	var temps [4]tensor.Operand
	for i, s := range []tensor.Spec{
		{Shape: tensor.Shape{rows}, DType: keys.DType}, {Shape: tensor.Shape{rows, 3}, DType: tensor.Uint32},
		{Shape: tensor.Shape{rows, chunks, 256}, DType: tensor.Uint32},
		{Shape: tensor.Shape{rows, 2, chunks}, DType: tensor.Uint32},
	} {
		if temps[i], err = r.Temp(s); err != nil {
			return err
		}
	}
	digits, state, counts, kinds := temps[0].Arg(), temps[1].Arg(), temps[2].Arg(), temps[3].Arg()
	each, row := kit.Simds(chunks, rows, 1), kit.Simds(rows, 1, 1)
	search := selectVariant{keys: keys.DType}
	for shift := 8 * (keys.DType.Size() - 1); shift >= 0; shift -= 8 {
		err := selectKernels.Launch(r, search, "count_chunk", each, keys.Arg(), digits, state, counts, params(shift))
		if err != nil {
			return err
		}
		if err := selectKernels.Launch(r, search, "next_digit", row, counts, digits, state, params(shift)); err != nil {
			return err
		}
	}
	err = selectKernels.Launch(r, search, "count_kinds", each, keys.Arg(), digits, state, kinds, params(0))
	if err != nil {
		return err
	}
	if err := selectKernels.Launch(r, search, "add_kinds", kit.Simds(2*rows, 1, 1), kinds, params(0)); err != nil {
		return err
	}
	return selectKernels.Launch(r, v, "keep_chunk", each, keys.Arg(), digits, state, kinds, out.Arg(), params(0))
}

// largestRows puts the k largest keys of each row into out, in ascending order, or their places (index): as the end of
// the sorted row.
func largestRows(r *tensor.Run, keys tensor.Operand, k int, index bool, out tensor.Operand) error {
	rows, n, err := kit.RowsOf(keys.Shape)
	if err != nil {
		return err
	}
	w := keptPlaces{n - k, k}
	switch {
	case k == n:
		return sortRows(r, keys, index, out)
	case fewKeys(n):
		return rankRows(r, keys, w, index, out)
	}
	kept, err := r.Temp(out.Spec)
	if err != nil {
		return err
	}
	if err := selectRows(r, keys, n-k, w, index, kept); err != nil {
		return err
	}
	if !index {
		return sortRows(r, kept, false, out)
	}
	v := selectVariant{keys: keys.DType}
	largest, err := r.Temp(tensor.Spec{Shape: out.Shape, DType: keys.DType})
	if err != nil {
		return err
	}
	err = selectKernels.Launch(r, v, "keys_at", kit.Plane(k, rows), keys.Arg(), kept.Arg(), largest.Arg(), kit.Uint(n),
		kit.Uint(k))
	if err != nil {
		return err
	}
	order, err := argsortRows(r, largest)
	if err != nil {
		return err
	}
	return selectKernels.Launch(r, v, "compose", kit.Plane(k, rows), kept.Arg(), order.Arg(), out.Arg(), kit.Uint(k))
}
