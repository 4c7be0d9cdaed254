package sig

// Kind is what a parameter takes, and the Go value that Args holds for it.
type Kind uint8

// The kinds. A number stands for an array wherever one is wanted; a boolean too.
const (
	// KindArray is a *tensor.Array; a number makes int32 or float32 as it is integral or not, a boolean bool.
	KindArray Kind = iota
	// KindOperand is an array; a number takes the dtype that MLX's Python scalars take beside the other operands.
	KindOperand
	// KindFloat is an array; a number makes float32.
	KindFloat
	// KindFill is a *Fill: what an array is filled with.
	KindFill
	// KindIndices is an array of integers; a table of integers makes int32.
	KindIndices
	// KindKey is an array: a key of random numbers. The caller's own next one stands for one that is left out.
	KindKey
	// KindSeed is a uint64; a string of digits stands for one that no number of the language holds.
	KindSeed
	// KindArrays is a []*tensor.Array.
	KindArrays
	// KindInt is an int.
	KindInt
	// KindAxis is an int; MLX's None is false.
	KindAxis
	// KindInts is a []int; one integer makes a list of one.
	KindInts
	// KindAxes is a []int; one integer makes a list of one; MLX's None is false.
	KindAxes
	// KindIntLists is a *IntLists: an integer, a list of integers, or a list of lists.
	KindIntLists
	// KindNumber is a float64.
	KindNumber
	// KindBool is a bool.
	KindBool
	// KindString is a string.
	KindString
	// KindStrings is a []string.
	KindStrings
	// KindDType is a tensor.DType.
	KindDType
	// KindShape is a *tensor.ShapeArg: a list of sizes, a number, or an array that stands for its shape.
	KindShape

	// From here on kinds are the binding's own: signatures of functions that are no ops.

	// KindFunction is a function of the script.
	KindFunction
	// KindTable is a table, with string keys too.
	KindTable
	// KindList is any value, but no table with string keys.
	KindList
	// KindValue is any value but a table.
	KindValue
	// KindAny is any value.
	KindAny
	// KindTree is any value: a tree of arrays.
	KindTree

	// Kinds counts them.
	Kinds
)

var kindNames = [Kinds]string{"array", "operand", "float", "fill", "indices", "key", "seed", "arrays", "int", "axis",
	"ints", "axes", "intlists", "number", "bool", "string", "strings", "dtype", "shape", "function", "table", "list",
	"value", "any", "tree"}

// String is the kind as a signature names it.
func (k Kind) String() string { return kindNames[k] }

// list says whether a list of numbers is a value of the kind, which may be written without a table, as last arguments.
func (k Kind) list() bool { return k == KindShape || k == KindAxes || k == KindInts }
