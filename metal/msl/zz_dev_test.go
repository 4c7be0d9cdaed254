package msl

import (
	"fmt"
	"os"
	"testing"
)

func TestDev(t *testing.T) {
	f := os.Getenv("MSLFILE")
	if f == "" {
		t.Skip()
	}
	b, _ := os.ReadFile(f)
	m, err := Compile(Source{Name: "source", Text: string(b)}, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.String())
	fmt.Println("verify:", m.Verify())
}
