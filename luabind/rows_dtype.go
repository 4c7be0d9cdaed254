package luabind

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// dtypeRows are the questions about dtypes.
var dtypeRows = []row{
	{name: "issubdtype", sig: "arg1:value arg2:value", host: true,
		help: "Whether a dtype or a category belongs to another one: mx.issubdtype(mx.float32, mx.inexact). The categories " +
			"are generic, above number, above integer (signedinteger, unsignedinteger) and inexact (floating, " +
			"complexfloating). bool is generic only; a category belongs to no dtype.",
		call: func(a *args) any { return lua.LBool(a.kindOf(0).within(a.kindOf(1))) }},
	{name: "isdtype", sig: "dtype:dtype kind:value", host: true,
		help: "Whether a dtype is of a kind: a dtype, or \"bool\", \"signed integer\", \"unsigned integer\", \"integral\", " +
			"\"real floating\", \"complex floating\" or \"numeric\"; or of one in a table of kinds.",
		call: func(a *args) any {
			kinds := []lua.LValue{a.raw[1]}
			if t, ok := a.raw[1].(*lua.LTable); ok {
				kinds = kinds[:0]
				for i := 1; i <= t.Len(); i++ {
					kinds = append(kinds, t.RawGetInt(i))
				}
			}
			is := false
			for _, v := range kinds {
				k, err := namedKind(v)
				if err != nil {
					a.fail("%w", err)
				}
				is = is || kindOfDType(a.DType(0)).within(k)
			}
			return lua.LBool(is)
		}},
	{name: "result_type", sig: "arrays_and_dtypes:value...", host: true,
		help: "The dtype of an operation on arrays or elements of dtypes.", call: func(a *args) any {
			if len(a.rest) == 0 {
				a.fail("no array or dtype is given")
			}
			out := tensor.Bool
			for i, v := range a.rest {
				out = tensor.Promote(out, a.dtypeOf(fmt.Sprintf("arrays_and_dtypes[%d]", i+1), v))
			}
			return out
		}},
	{name: "can_cast", sig: "from_:value to:dtype", host: true,
		help: "Whether an array or a dtype becomes the dtype to in an operation with it.", call: func(a *args) any {
			to := a.DType(1)
			return lua.LBool(tensor.Promote(a.dtypeOf("from_", a.raw[0]), to) == to)
		}},
}

// dtypeOf is the dtype that an argument is, or that of an array.
func (a *args) dtypeOf(name string, v lua.LValue) tensor.DType {
	if d, ok := unwrap[tensor.DType](v); ok {
		return d
	}
	x, ok := array(v)
	if !ok {
		a.fail("%s is %s, want an array or a dtype", name, describe(v))
	}
	return x.DType()
}

// category is a category of dtypes: its name.
type category string

const categoryKind = "category"

// String is the category's name.
func (c category) String() string { return string(c) }

// above are the categories, each with the one that it is a part of.
var above = map[category]category{"complexfloating": "inexact", "floating": "inexact", "inexact": "number",
	"signedinteger": "integer", "unsignedinteger": "integer", "integer": "number", "number": "generic", "generic": ""}

// kind is a dtype or a category.
type kind struct {
	category category
	one      bool // the dtype alone
	dtype    tensor.DType
}

func kindOfDType(d tensor.DType) kind {
	k := kind{category: "generic", one: true, dtype: d}
	switch {
	case d.IsSigned():
		k.category = "signedinteger"
	case d.IsUnsigned():
		k.category = "unsignedinteger"
	case d.IsFloat():
		k.category = "floating"
	case d.IsComplex():
		k.category = "complexfloating"
	}
	return k
}

// within reports whether all that is of kind k is of kind other.
func (k kind) within(other kind) bool {
	if other.one {
		return k.one && k.dtype == other.dtype
	}
	for c := k.category; c != ""; c = above[c] {
		if c == other.category {
			return true
		}
	}
	return false
}

// kindOf is the dtype or category that argument i is.
func (a *args) kindOf(i int) kind {
	if d, ok := unwrap[tensor.DType](a.raw[i]); ok {
		return kindOfDType(d)
	}
	c, ok := unwrap[category](a.raw[i])
	if !ok {
		a.fail("%s is %s, want a dtype or a category such as mx.floating", a.f.params[i].Name, describe(a.raw[i]))
	}
	return kind{category: c}
}

// namedKinds are the kinds that isdtype knows by name, beside "bool".
var namedKinds = map[string]category{"signed integer": "signedinteger", "unsigned integer": "unsignedinteger",
	"integral": "integer", "real floating": "floating", "complex floating": "complexfloating", "numeric": "number"}

// namedKind is what isdtype takes for a kind.
func namedKind(v lua.LValue) (kind, error) {
	if d, ok := unwrap[tensor.DType](v); ok {
		return kindOfDType(d), nil
	}
	name, ok := v.(lua.LString)
	if !ok {
		return kind{}, fmt.Errorf("kind %w", wrong(v, "a dtype or the name of a kind, or a table of them"))
	}
	if name == "bool" {
		return kindOfDType(tensor.Bool), nil
	}
	c, ok := namedKinds[string(name)]
	if !ok {
		return kind{}, fmt.Errorf("kind is %s, want bool, signed integer, unsigned integer, integral, real floating, "+
			"complex floating or numeric", quote(string(name)))
	}
	return kind{category: c}, nil
}
