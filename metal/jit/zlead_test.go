//go:build lead

package jit

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/msl"
)

func TestLeadDump(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("LEAD"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := msl.Compile(msl.Source{Name: "x", Text: string(text)}, msl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	level := isaAVX512
	if os.Getenv("AVX2") != "" {
		level = isaAVX2
	}
	k := lanes.Optimise(m.Kernels[0])
	if os.Getenv("KIR") != "" {
		fmt.Println(k)
	}
	geo := lanes.Geometry{Row: true, Aligned: true, Full: true}
	switch os.Getenv("PAIR") {
	case "rows":
		geo.Pair = lanes.PairRows
	case "columns":
		geo.Pair = lanes.PairColumns
	}
	if geo.Pair != 0 {
		k = lanes.Pair(k, geo.Pair, false)
	}
	c, err := compile(k, level, geo)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/code.bin", c.bytes, 0o644)
	out, _ := exec.Command("objdump", "-D", "-b", "binary", "-mi386:x86-64", "-Mintel", "--no-show-raw-insn", "/tmp/code.bin").CombinedOutput()
	fmt.Println(string(out), len(c.bytes), c.lay.frameBytes)
}

func TestLeadPos(t *testing.T) {
	text := `kernel void k(device uint* o [[buffer(0)]], constant int& T [[buffer(1)]], uint3 p [[thread_position_in_grid]], uint3 q [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  uint s = p.y*1000 + p.z*100;
  uint acc = 0;
  for (int t = 0; t < T; t++) { acc += s; acc += simd_sum(q.x); if (lane == 0) o[p.z*8+p.y] = acc;  }
 }`
	m, err := msl.Compile(msl.Source{Name: "x", Text: text}, msl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []func() runner2{func() runner2 { p, _ := interp.Prepare(m.Kernels[0], m.Files); return p }, func() runner2 { p, _ := Prepare(m.Kernels[0], m.Files, Options{}); return p }} {
		o := make([]byte, 4*32)
		err := r().Run(interp.Launch{Grid: [3]int{32, 8, 2}, Threadgroup: [3]int{32, 4, 1}, Workers: 1, Buffers: [][]byte{o, {2, 0, 0, 0}}})
		fmt.Println(err)
		for i := range 32 {
			fmt.Print(uint(o[4*i])+uint(o[4*i+1])<<8+uint(o[4*i+2])<<16, " ")
		}
		fmt.Println()
	}
}

type runner2 interface{ Run(interp.Launch) error }

func TestLeadGD(t *testing.T) {
	text, _ := os.ReadFile("/tmp/dump/gd.metal")
	m, err := msl.Compile(msl.Source{Name: "x", Text: string(text)}, msl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	const T = 1
	for _, r := range []func() runner2{func() runner2 { p, _ := interp.Prepare(m.Kernels[0], m.Files); return p }, func() runner2 { p, _ := Prepare(m.Kernels[0], m.Files, Options{}); return p }} {
		seq := func() []byte { return floats(t, T*32*128) }
		y, so := seq(), floats(t, 32*128*128)
		err := r().Run(interp.Launch{Grid: [3]int{32, 8, 2}, Threadgroup: [3]int{32, 4, 1}, Workers: 1, Buffers: [][]byte{seq(), seq(), seq(), floats(t, T*32), floats(t, T*32), floats(t, 32*128*128), words(T), y, so}})
		fmt.Println(err)
		all = append(all, y, so)
	}
	n := 0
	for k := 0; k < 2; k++ {
		for i := 0; i < len(all[k]); i += 4 {
			if string(all[k][i:i+4]) != string(all[k+2][i:i+4]) && n < 20 {
				n++
				fmt.Println(k, i/4, all[k][i:i+4], all[k+2][i:i+4])
			}
		}
	}
}
