package drivers

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/apple/fake"
)

// TestTrusted: "auto" takes a GPU of Apple's that has passed on this system, and no other.
func TestTrusted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a", "checked")
	path := func() (string, error) { return file, nil }
	rt := fake.New(fake.M1)
	open := func() (metal.Driver, error) { return apple.New(rt) }
	_, err := trusted(path, open)
	require.ErrorIs(t, err, errUnchecked, "nobody has checked")
	_, err = trusted(func() (string, error) { return "", errors.New("no folder") }, open)
	require.ErrorIs(t, err, errUnchecked)

	d, err := open()
	require.NoError(t, err)
	info := d.Info()
	require.NoError(t, d.Close())
	require.NoError(t, trust(path, info))
	d, err = trusted(path, open)
	require.NoError(t, err)
	require.NoError(t, d.Close())

	later := fake.M1
	later.Version = "15.2"
	rt = fake.New(later)
	_, err = trusted(path, open)
	require.ErrorIs(t, err, errUnchecked, "it was another macOS")
	require.Empty(t, rt.Leaks())
	require.NoError(t, os.WriteFile(file, []byte("yes"), 0o600))
	_, err = trusted(path, open)
	require.ErrorIs(t, err, errUnchecked)
}
