package lua51

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// openMath replaces the math library, but for math.random: gopher-lua's takes no text for a number.
func (s *State) openMath() {
	lib := s.library(lua.MathLibName)
	lib.RawSetString("huge", lua.LNumber(math.Inf(1)))
	set := func(name string, f lua.LGFunction) { lib.RawSetString(name, s.plain(f)) }
	const radians = math.Pi / 180 // of a degree
	for name, f := range map[string]func(x float64) float64{
		"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
		"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10, "sin": math.Sin,
		"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
		"deg": func(x float64) float64 { return x / radians }, "rad": func(x float64) float64 { return x * radians },
	} {
		set(name, func(L *lua.LState) int {
			L.Push(lua.LNumber(f(numberArg(L, 1))))
			return 1
		})
	}
	for name, f := range map[string]func(x, y float64) float64{
		"atan2": math.Atan2, "fmod": math.Mod, "mod": math.Mod, "pow": math.Pow,
	} {
		set(name, func(L *lua.LState) int {
			L.Push(lua.LNumber(f(numberArg(L, 1), numberArg(L, 2))))
			return 1
		})
	}
	set("frexp", func(L *lua.LState) int {
		fraction, exponent := math.Frexp(numberArg(L, 1))
		L.Push(lua.LNumber(fraction))
		L.Push(lua.LNumber(exponent))
		return 2
	})
	set("ldexp", func(L *lua.LState) int {
		L.Push(lua.LNumber(math.Ldexp(numberArg(L, 1), integerArg(L, 2))))
		return 1
	})
	set("modf", func(L *lua.LState) int {
		x := numberArg(L, 1)
		whole, fraction := math.Modf(x)
		if math.IsInf(x, 0) {
			fraction = math.Copysign(0, x)
		}
		L.Push(lua.LNumber(whole))
		L.Push(lua.LNumber(fraction))
		return 2
	})
	extreme := func(better func(x, than float64) bool) lua.LGFunction {
		return func(L *lua.LState) int {
			best := numberArg(L, 1)
			for i := 2; i <= L.GetTop(); i++ {
				if x := numberArg(L, i); better(x, best) {
					best = x
				}
			}
			L.Push(lua.LNumber(best))
			return 1
		}
	}
	set("max", extreme(func(x, than float64) bool { return x > than }))
	set("min", extreme(func(x, than float64) bool { return x < than }))
}
