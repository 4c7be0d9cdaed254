package sig

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

func TestParse(t *testing.T) {
	params, err := Parse("a shift:int|ints axis:axes? k:int=-1 eps:number=1e-5 keep:bool=false dtype:dtype=float32 " +
		"mode:'constant'|'edge'=edge axes:ints=[-2,-1] shape:shape=[] mask:'causal'|array? p:float=0.5 key:key?")
	require.NoError(t, err)
	shape := tensor.Sizes()
	want := []Param{
		{Name: "a", Kinds: []Kind{KindArray}},
		{Name: "shift", Kinds: []Kind{KindInt, KindInts}},
		{Name: "axis", Kinds: []Kind{KindAxes}, Optional: true},
		{Name: "k", Kinds: []Kind{KindInt}, Optional: true, Default: "-1", Value: -1},
		{Name: "eps", Kinds: []Kind{KindNumber}, Optional: true, Default: "1e-5", Value: 1e-5},
		{Name: "keep", Kinds: []Kind{KindBool}, Optional: true, Default: "false", Value: false},
		{Name: "dtype", Kinds: []Kind{KindDType}, Optional: true, Default: "float32", Value: tensor.Float32},
		{Name: "mode", Words: []string{"constant", "edge"}, Optional: true, Default: "edge", Value: "edge"},
		{Name: "axes", Kinds: []Kind{KindInts}, Optional: true, Default: "[-2,-1]", Value: []int{-2, -1}},
		{Name: "shape", Kinds: []Kind{KindShape}, Optional: true, Default: "[]", Value: &shape},
		{Name: "mask", Kinds: []Kind{KindArray}, Words: []string{"causal"}, Optional: true},
		{Name: "p", Kinds: []Kind{KindFloat}, Optional: true, Default: "0.5", Value: 0.5},
		{Name: "key", Kinds: []Kind{KindKey}, Optional: true},
	}
	require.Equal(t, want, params)

	params = MustParse("a shape:shape...")
	require.True(t, params[1].Spread)
	require.False(t, params[1].Many)
	params = MustParse("subscripts:string operands... sparse:bool=false")
	require.True(t, params[1].Many)
	require.Equal(t, KindArray, params[1].Kind())
	require.Empty(t, MustParse(""))
}

// A signature that says what cannot be is refused.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a:arry":                 `"arry" is no kind`,
		":int":                   "there is no name",
		"a k:int=x":              `"x" is no value of the parameter`,
		"a k:int=1.5":            `"1.5" is no value`,
		"a k:bool=1":             `"1" is no value`,
		"a d:dtype=float31":      `"float31" is no value`,
		"a m:'x'|'y'=z":          `"z" is no value`,
		"a m:'x|'y'":             "'x is no word in quotes",
		"a k:array=zero":         `"zero" is no value`,
		"a s:shape=[1":           `"[1" is no value`,
		"a f:indices=1":          `"1" is no value`,
		"a a":                    "there are two",
		"a...  b":                "behind ... it must be optional",
		"s:shape... b:int?":      "s... must be the last",
		"a k:int=":               "neither ? nor a default",
		"a k:int??":              `"??" is neither ? nor a default`,
		"a k:ints=[1,x]":         `"[1,x]" is no value`,
		"k:number=false":         `"false" is no value`,
		"k:intlists=[1] fun:any": `"[1]" is no value`,
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
	require.PanicsWithValue(t, `BUG: sig: a:arry in "a:arry": "arry" is no kind`, func() { MustParse("a:arry") })
}

func TestDef(t *testing.T) {
	before := funcs
	funcs = map[string]*Func{}
	defer func() { funcs = before }()
	Alias("b.second", "b.first") // before what it stands for, as initialisation may have it
	f := Def("b.first", "a k:int=2", func(a *Args) any { return a.Int(1) }, Doc("First"))
	require.Equal(t, "First", f.Doc)
	require.Equal(t, f, Lookup("b.first"))
	second := Lookup("b.second")
	require.Equal(t, f.Params, second.Params)
	require.Equal(t, 2, second.Call(&Args{V: []any{nil, 2}}))
	require.Nil(t, Lookup("b.third"))
	Def("a", "", func(*Args) any { return nil })
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"a", "b.first", "b.second"}, names)
	require.Panics(t, func() { Def("a", "", nil) })
	require.Panics(t, func() { Def("c", "f:function", nil) })
	Alias("d", "e")
	require.Panics(t, func() { Lookup("d") })
}

// An argument read as what it is not, or that the signature does not have, is found where it is read.
func TestArgs(t *testing.T) {
	s := tensor.Sizes(2, 3)
	a := &Args{V: []any{nil, 3, []int{1}, "x", &s, tensor.Int8, 2.5, nil}}
	require.Nil(t, a.Array(0))
	require.False(t, a.Given(0))
	require.Equal(t, 3, *a.Axis(1))
	require.Nil(t, a.Axis(0))
	require.Equal(t, []int{1}, a.Ints(2))
	require.Equal(t, s, a.Shape(4))
	require.Equal(t, tensor.ShapeArg{}, a.Shape(0))
	require.Equal(t, tensor.Int8, a.DType(5))
	require.Equal(t, tensor.Int16, a.DTypeOr(7, tensor.Int16))
	require.Nil(t, a.DTypeOrNone(7))
	require.Equal(t, 2.5, *a.NumberOrNone(6))
	text, ok := As[string](a, 3)
	require.True(t, ok)
	require.Equal(t, "x", text)
	_, ok = As[*tensor.Array](a, 3)
	require.False(t, ok)
	require.Panics(t, func() { a.Int(2) })
	require.Panics(t, func() { a.Array(8) })
	require.Panics(t, func() { a.DType(7) })
	require.Equal(t, tensor.Int8, (&Fill{Number: 1}).DType(tensor.Int8))
}
