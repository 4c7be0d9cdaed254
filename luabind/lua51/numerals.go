package lua51

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// folded does arithmetic of numerals, as Lua 5.1's compiler does. gopher-lua's would do it too, but it takes 010 for 8
// and 1e400 for no number, and it divides by zeros: that is left to the machine, since 0 and -0 are one constant of a
// function, whichever comes first in it.
func folded(e ast.Expr) ast.Expr {
	if division(e) {
		return e
	}
	v, ok := arithmeticOfNumerals(e)
	if !ok {
		return e
	}
	text := strconv.FormatFloat(v, 'g', -1, 64) // gopher-lua reads +Inf and NaN, too
	if text == "-0" {
		text = "-0.0" // -0 would be a whole number
	}
	n := &ast.NumberExpr{Value: text}
	n.SetLine(e.Line())
	return n
}

// division makes `v / 0` of numerals `(#"" + v) / 0`, which is no arithmetic of numerals, and `%` likewise. It reports
// whether it has.
func division(e ast.Expr) bool {
	d, ok := e.(*ast.ArithmeticOpExpr)
	if !ok || d.Operator != "/" && d.Operator != "%" {
		return false
	}
	_, first := numeral(d.Lhs)
	if b, second := numeral(d.Rhs); !first || !second || b != 0 {
		return false
	}
	text := &ast.StringExpr{}
	length := &ast.UnaryLenOpExpr{Expr: text}
	sum := &ast.ArithmeticOpExpr{Operator: "+", Lhs: length, Rhs: d.Lhs}
	for _, e := range []ast.Expr{text, length, sum} {
		e.SetLine(d.Line())
	}
	d.Lhs = sum
	return true
}

// arithmeticOfNumerals is the value of a numeral, or of an operation on folded ones; false: e is something else.
func arithmeticOfNumerals(e ast.Expr) (float64, bool) {
	switch e := e.(type) {
	case *ast.UnaryMinusOpExpr:
		v, ok := numeral(e.Expr)
		return -v, ok
	case *ast.ArithmeticOpExpr:
		a, first := numeral(e.Lhs)
		b, second := numeral(e.Rhs)
		return arithmetic[operators[e.Operator]](a, b), first && second
	}
	return numeral(e)
}

// operators are the names of the metamethods.
var operators = map[string]string{"+": "__add", "-": "__sub", "*": "__mul", "/": "__div", "%": "__mod", "^": "__pow"}

// numeral is the value of a numeral; false: e is something else.
func numeral(e ast.Expr) (float64, bool) {
	n, ok := e.(*ast.NumberExpr)
	if !ok {
		return 0, false
	}
	if v, ok := readNumber(n.Value, 10); ok {
		return float64(v), true
	}
	v, err := strconv.ParseFloat(n.Value, 64) // an infinity or NaN of folded's
	return v, err == nil
}
