//go:build lead

package jit_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/jit/difftest"
	"github.com/mlxlua/mlxlua/metal/msl"
)

func TestLeadSeeds(t *testing.T) {
	from, _ := strconv.ParseUint(os.Getenv("FROM"), 10, 64)
	n, _ := strconv.ParseUint(os.Getenv("N"), 10, 64)
	l := levels(t)
	start := time.Now()
	bad := 0
	for s := from; s < from+n && bad < 5; s++ {
		c := difftest.New(s)
		if err := compare(c, l); err != nil {
			bad++
			fmt.Println("SEED", s, err)
		}
	}
	fmt.Println(n, "programs", time.Since(start))
}

func TestLeadTime(t *testing.T) {
	s, _ := strconv.ParseUint(os.Getenv("FROM"), 10, 64)
	c := difftest.New(s)
	fmt.Println(c.String())
	mod, _ := msl.Compile(msl.Source{Name: "k", Text: c.Text}, msl.Options{})
	k := mod.Kernels[0]
	ref, _ := interp.Prepare(k, mod.Files)
	st := time.Now()
	_, err := execute(c, k, ref)
	fmt.Println("interp", time.Since(st), err)
	for _, l := range levels(t) {
		p, _ := jit.Prepare(k, mod.Files, jit.Options{Level: l})
		st := time.Now()
		_, err := execute(c, k, p)
		fmt.Println(l, time.Since(st), err)
	}
}
