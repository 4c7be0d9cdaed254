package apple

import (
	"strings"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/prelude"
)

// headers are what Apple's compiler has of its own: the names of prelude.Standard, and the functions of Metal's
// library.
const headers = `#include <metal_stdlib>
#include <metal_atomic>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
using namespace metal;
`

// preamble is what stands in front of every text: Apple's headers, and the names that MLX adds.
var preamble = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString(headers)
	for _, s := range append(prelude.BFloat(), prelude.Helpers()...) {
		b.WriteString("#line 1 \"" + s.Name + "\"\n" + s.Text + "\n")
	}
	return b.String()
})

// Preamble is what the driver puts in front of every text.
func Preamble() string { return preamble() }

// wholeText is a text as Apple's compiler gets it: errors have the places that they have in the text. What Clang's
// macro says of the arithmetic is what was asked for, as metal/front has it, and not what Metal was told: see
// Driver.options.
func wholeText(src metal.Source) string {
	math := "#undef __FAST_MATH__\n"
	if src.Options.MathMode == metal.MathFast {
		math += "#define __FAST_MATH__ 1\n"
	}
	return preamble() + math + "#line 1 \"" + fileName(src.Label) + "\"\n" + src.Text + "\n"
}

// fileName is a label as the name of a file.
func fileName(label string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(".-_/", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, label)
	if name == "" {
		return "source"
	}
	return name
}
