//go:build ctime

package jit

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"crypto/sha256"
	"path/filepath"
	"sort"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/difftest"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/msl"
)

func TestSeedTime(t *testing.T) {
	for _, s := range strings.Split(os.Getenv("SEEDS"), ",") {
		n, _ := strconv.ParseUint(s, 10, 64)
		c := difftest.New(n)
		t0 := time.Now()
		m, err := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{Float64: true})
		require.NoError(t, err)
		t1 := time.Now()
		o := lanes.Optimise(m.Kernels[0])
		t2 := time.Now()
		for _, l := range []isa{isaAVX512, isaAVX2} {
			t3 := time.Now()
			c, err := compile(o, l, lanes.Geometry{Row: true, Aligned: true, Full: true})
			n, h := 0, [32]byte{}
			if err == nil {
				n, h = len(c.bytes), sha256.Sum256(c.bytes)
			}
			fmt.Println(s, "msl", t1.Sub(t0), "opt", t2.Sub(t1), l, time.Since(t3), n, fmt.Sprintf("%x", h[:4]), err)
		}
	}
}

// TestHashes prints sizes and hashes of the code of all kernels of a folder.
func TestHashes(t *testing.T) {
	texts := map[string]string{"gelu": geluText, "qmv": qmvText, "gd": gatedDeltaText}
	if d := os.Getenv("DIR"); d != "" {
		fs, _ := filepath.Glob(d + "/*.metal")
		for _, f := range fs {
			b, _ := os.ReadFile(f)
			texts[filepath.Base(f)] = string(b)
		}
	}
	var names []string
	for n := range texts {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		m, err := msl.Compile(msl.Source{Name: "k", Text: texts[n]}, msl.Options{Float64: true})
		if err != nil {
			continue
		}
		for _, k := range m.Kernels {
			o := lanes.Optimise(k)
			for _, l := range []isa{isaAVX512, isaAVX2} {
				c, err := compile(o, l, lanes.Geometry{Row: true, Aligned: true, Full: true})
				if err != nil {
					fmt.Println(n, k.Name, l, err)
					continue
				}
				h := sha256.Sum256(c.bytes)
				fmt.Println("H", n, k.Name, l, len(c.bytes), fmt.Sprintf("%x", h[:6]), amd64.LastSpills.Load())
			}
		}
	}
}
