package ptx_test

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/msl"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// NVIDIA's assembler judges the texts, where there is one. It needs no card: pip has it, in nvidia-cuda-nvcc.
var (
	assembler = flag.String("ptxas", "", "NVIDIA's ptxas; else the one on the path")
	programs  = flag.Int("ptx.programs", 14, "random programs to print and assemble")
	all       = flag.Bool("ptx.all", false, "every case for every target: minutes")
)

// ptxas returns the assembler, "" if there is none.
func ptxas(t *testing.T) string {
	t.Helper()
	if *assembler != "" {
		return *assembler
	}
	path, err := exec.LookPath("ptxas")
	if err != nil {
		t.Log("not assembled: there is no ptxas on the path, nor one given by -ptxas")
	}
	return path
}

// assemble has ptxas read a module printed for a target, for that target.
func assemble(t *testing.T, text string, sm int) {
	t.Helper()
	path := ptxas(t)
	if path == "" {
		return
	}
	cmd := exec.Command(path, "--gpu-name", name(sm), "-O0", "-o", "/dev/null", "/dev/stdin")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	lines := strings.Split(text, "\n")
	for _, l := range strings.Split(string(out), "\n") {
		var n int
		if _, after, ok := strings.Cut(l, "line "); ok {
			if _, err := fmt.Sscanf(after, "%d", &n); err == nil && n > 0 && n <= len(lines) {
				l += "\n\t" + lines[n-1]
			}
		}
		t.Log(l)
	}
	t.Fatalf("ptxas does not take the text for sm_%d: %v", sm, err)
}

// single makes a random program one that computes in float32 where it would in float64, which PTX texts do not.
func single(text string) string {
	var kept []string
	for _, l := range strings.Split(text, "\n") {
		if !strings.HasPrefix(l, "double canon(double") {
			kept = append(kept, strings.ReplaceAll(l, "double", "float"))
		}
	}
	return strings.Join(kept, "\n")
}

// program makes a random kernel, nil if it cannot do without float64.
func program(t *testing.T, seed uint64) *kir.Kernel {
	c := kerneltest.New(seed, min(kerneltest.Reach(seed%4), kerneltest.Threadgroups))
	mod, err := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{Float64: true})
	require.NoError(t, err, "seed %d", seed)
	if _, err = ptx.Print(mod.Kernels[0], ptx.Options{SM: 75}); err == nil || !errors.Is(err, ptx.ErrFloat64) {
		return mod.Kernels[0]
	}
	if mod, err = msl.Compile(msl.Source{Name: "k", Text: single(c.Text)}, msl.Options{}); err != nil {
		return nil // it counted on the size
	}
	return mod.Kernels[0]
}

// TestRandomPrograms prints random programs, and has each assembled for one target, all targets taking turns.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	n := *programs
	if testing.Short() {
		n = min(n, 10)
	}
	targets := ptx.Targets()
	for seed := range uint64(n) {
		k := program(t, seed)
		if k == nil {
			continue
		}
		sm := targets[int(seed)%len(targets)]
		text, err := ptx.Print(k, ptx.Options{SM: sm})
		require.NoError(t, err, "seed %d", seed)
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) { assemble(t, text.String(), sm) })
	}
}

func name(sm int) string { return fmt.Sprintf("sm_%d", sm) }
