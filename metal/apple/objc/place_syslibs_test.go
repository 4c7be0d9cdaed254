//go:build syslibs && linux && (amd64 || arm64)

package objc

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
)

// TestPlaceAgainstC: C gets what was placed, by the rules of the processor that the test runs on; arguments go on Linux
// as they do on macOS. It needs a C compiler, or PROBE, a library that one has made of testdata/probe.c. For arm64 on
// another processor:
//
//	aarch64-linux-gnu-gcc -O1 -shared -fPIC -o probe.so testdata/probe.c
//	CGO_ENABLED=0 GOARCH=arm64 go test -tags syslibs -c -o objc.test . &&
//	PROBE=./probe.so qemu-aarch64 -L /usr/aarch64-linux-gnu ./objc.test -test.run TestPlaceAgainstC -test.v
func TestPlaceAgainstC(t *testing.T) {
	path := os.Getenv("PROBE")
	if path == "" {
		path = filepath.Join(t.TempDir(), "probe.so")
		out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", path, "testdata/probe.c").CombinedOutput()
		if err != nil {
			t.Skipf("no C compiler: %v %s", err, out)
		}
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW)
	require.NoError(t, err)
	function := func(name string) uintptr {
		f, err := purego.Dlsym(lib, name)
		require.NoError(t, err)
		return f
	}
	recorded := function("recorded")
	call := func(name string, args ...Arg) (uintptr, []uintptr) {
		c := &Call{}
		require.NoError(t, c.Place(runtime.GOARCH, 1, 2, args))
		r, _, _ := purego.SyscallN(function(name), c.Words[:c.N]...)
		var got []uintptr
		for i := range uintptr(10) {
			w, _, _ := purego.SyscallN(recorded, i)
			got = append(got, w)
		}
		runtime.KeepAlive(c)
		return r, got
	}
	r, got := call("words", Obj(7), Num(8), Signed(-9))
	require.Equal(t, uintptr(0x123456789abcdef0), r)
	require.Equal(t, []uintptr{1, 2, 7, 8, ^uintptr(8)}, got[:5])
	_, got = call("eight", Num(3), Num(4), Num(5), Num(6), Num(7), Num(8))
	require.Equal(t, []uintptr{1, 2, 3, 4, 5, 6, 7, 8}, got[:8])
	_, got = call("sizes", Size(3, 4, 5), Size(6, 7, 8))
	require.Equal(t, []uintptr{1, 2, 3, 4, 5, 6, 7, 8}, got[:8])
	var out Object
	_, got = call("between", Num(3), Size(4, 5, 6), Yes(true), Size(7, 8, 9), Out(&out))
	require.Equal(t, []uintptr{1, 2, 3, 4, 5, 6, 1, 7, 8, 9}, got)
	require.Equal(t, Object(77), out)

	var twice func(self, sel uintptr) float64
	purego.RegisterFunc(&twice, function("twice"))
	require.Equal(t, 2.5, twice(1, 2))
}
