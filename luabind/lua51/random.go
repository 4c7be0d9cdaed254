package lua51

import (
	"math"
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"
)

// Seed has math.random begin with the numbers of a seed, as Options.Seed does.
func Seed(s *State, seed uint64) { s.seed(seed) }

// openMathRandom gives the state random numbers of its own, which Options.Seed starts: gopher-lua's are the process's,
// and its math.randomseed has no effect with this Go.
func (s *State) openMathRandom() {
	lib := s.library(lua.MathLibName)
	source := rand.NewPCG(s.opt.Seed, 0)
	s.seed = func(n uint64) { source.Seed(n, 0) }
	numbers := rand.New(source)
	s.Method(lib, "random", func(L *lua.LState) int {
		low, high := 1.0, 1.0
		switch L.GetTop() {
		case 0:
			L.Push(lua.LNumber(numbers.Float64()))
			return 1
		case 1:
			high = math.Trunc(numberArg(L, 1))
		case 2:
			low, high = math.Trunc(numberArg(L, 1)), math.Trunc(numberArg(L, 2))
		default:
			L.RaiseError("wrong number of arguments")
		}
		if !(low <= high) {
			L.ArgError(L.GetTop(), "interval is empty")
		}
		if math.IsInf(high-low, 0) {
			L.ArgError(L.GetTop(), "interval has no end")
		}
		L.Push(lua.LNumber(math.Floor(numbers.Float64()*(high-low+1)) + low))
		return 1
	})
	s.Method(lib, "randomseed", func(L *lua.LState) int {
		source.Seed(math.Float64bits(numberArg(L, 1)), 0)
		return 0
	})
}
