// Package prelude holds the names that kernels find declared, as MSL text of ours: what Metal's standard headers define
// besides functions, and the helpers that MLX puts in front of every custom kernel.
//
// README.md lists the files, who needs which, and how to add a name.
package prelude

import "embed"

// Source is a named text.
type Source struct {
	Name string // "prelude/complex.metal"
	Text string
}

//go:embed *.metal
var files embed.FS

// Standard returns what Metal's own headers declare: macros, type traits, numeric_limits and array. A driver whose
// compiler brings those headers leaves it out. The texts form one unit in the order given; the math library comes next.
func Standard() []Source {
	return read("macros", "traits", "limits", "array", "logging")
}

// Helpers returns MLX's names: bfloat16_t, complex64_t, Limits, elem_to_loc and so on, and the functions that kernelgen
// and ops call. Every driver needs it, after the standard names and the math functions.
func Helpers() []Source {
	return read("functions", "helpers", "complex", "complexmath", "indexing", "simd")
}

// BFloat returns functions of Metal's library for bfloat, which MLX adds: for a compiler that brings Metal's own.
func BFloat() []Source { return read("bfloat") }

func read(names ...string) []Source {
	out := make([]Source, len(names))
	for i, n := range names {
		text, err := files.ReadFile(n + ".metal")
		if err != nil {
			panic("BUG: prelude: " + err.Error())
		}
		out[i] = Source{Name: "prelude/" + n + ".metal", Text: string(text)}
	}
	return out
}
