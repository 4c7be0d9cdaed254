package msl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDev(t *testing.T) {
	f := os.Getenv("MSLFILE")
	if f == "" {
		t.Skip()
	}
	files := []string{f}
	if st, _ := os.Stat(f); st.IsDir() {
		files, _ = filepath.Glob(f + "/*.metal")
	}
	root := os.Getenv("MSLROOT")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		t0 := time.Now()
		m, err := Compile(Source{Name: filepath.Base(f), Text: string(b)}, Options{Include: func(n string) (string, bool) {
			for _, p := range []string{root + "/" + n, filepath.Dir(f) + "/" + n} {
				if b, err := os.ReadFile(p); err == nil {
					return string(b), true
				}
			}
			return "", false
		}})
		el := time.Since(t0).Round(time.Microsecond)
		if err != nil {
			s := err.Error()
			if os.Getenv("MSLV") == "" {
				lines := strings.Split(s, "\n")
				s = strings.Join(lines[:min(4, len(lines))], "\n")
			}
			fmt.Println("FAIL", filepath.Base(f), el, s)
			continue
		}
		v := m.Verify()
		n := 0
		for _, k := range m.Kernels {
			n += k.NumInstrs
		}
		fmt.Println("ok", filepath.Base(f), el, len(m.Kernels), "kernels", n, "instrs verify:", v)
		if os.Getenv("MSLP") != "" {
			fmt.Println(m.String())
		}
	}
}
