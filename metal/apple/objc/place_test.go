package objc

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestPlace: where arguments go by the rules of the two processors.
func TestPlace(t *testing.T) {
	place := func(arch string, args ...Arg) []uintptr {
		var c Call
		require.NoError(t, c.Place(arch, 1, 2, args))
		return c.Words[:c.N]
	}
	for _, arch := range []string{"arm64", "amd64"} {
		require.Equal(t, []uintptr{1, 2}, place(arch))
		require.Equal(t, []uintptr{1, 2, 7, 8, 9}, place(arch, Obj(7), Num(8), Num(9)))
		require.Equal(t, []uintptr{1, 2, ^uintptr(0), 1, 0}, place(arch, Signed(-1), Yes(true), Yes(false)))
		require.Equal(t, []uintptr{1, 2, 3, 4, 5, 6}, place(arch, Num(3), Num(4), Num(5), Num(6)))
	}
	// System V: the structs are on the stack, one after another, behind all registers.
	require.Equal(t, []uintptr{1, 2, 0, 0, 0, 0, 3, 4, 5, 6, 7, 8}, place("amd64", Size(3, 4, 5), Size(6, 7, 8)))
	require.Equal(t, []uintptr{1, 2, 9, 10, 0, 0, 3, 4, 5}, place("amd64", Num(9), Size(3, 4, 5), Num(10)))
	require.Equal(t, []uintptr{1, 2, 3, 4, 5, 6, 7, 8}, place("amd64", Num(3), Num(4), Num(5), Num(6), Num(7), Num(8)))
	require.Equal(t, []uintptr{1, 2, 3, 4, 5, 6, 10, 11, 12, 7},
		place("amd64", Num(3), Num(4), Num(5), Size(10, 11, 12), Num(6), Num(7)))
	// AAPCS64: in their places are the addresses of copies.
	var c Call
	require.NoError(t, c.Place("arm64", 1, 2, []Arg{Size(3, 4, 5), Num(9), Size(6, 7, 8)}))
	require.Equal(t, 5, c.N)
	require.Equal(t, uintptr(9), c.Words[3])
	require.Equal(t, uintptr(unsafe.Pointer(&c.sizes[0])), c.Words[2])
	require.Equal(t, uintptr(unsafe.Pointer(&c.sizes[1])), c.Words[4])
	require.Equal(t, [2][3]uint64{{3, 4, 5}, {6, 7, 8}}, c.sizes)
	require.Equal(t, []uintptr{1, 2, 3, 4, 5, 6, 7, 8}, place("arm64", Num(3), Num(4), Num(5), Num(6), Num(7), Num(8)))
	require.Error(t, c.Place("arm64", 1, 2, []Arg{Num(3), Num(4), Num(5), Num(6), Num(7), Num(8), Num(9)}),
		"Apple's rule for the stack is not ours")

	bytes, out := []byte{1, 2}, Object(0)
	require.Equal(t, []uintptr{1, 2, uintptr(unsafe.Pointer(&bytes[0])), 2, uintptr(unsafe.Pointer(&out)), 0},
		place("arm64", Bytes(bytes), Num(2), Out(&out), Nothing()))
}

// TestTableFits: each message of the table fits into the registers of arm64.
func TestTableFits(t *testing.T) {
	for s := range Rows {
		words := 2
		for _, c := range Rows[s].Name {
			if c == ':' {
				words++
			}
		}
		require.LessOrEqual(t, words, 8, Rows[s].Name)
	}
}
