package lua51

import (
	"context"
	"fmt"
	"strings"

	"github.com/yuin/gopher-lua/parse"
)

// parserBytes is about how much a byte of a text takes while it is compiled, and more than most take: the parser makes
// a node of each token and keeps a stack of what is open.
const parserBytes = 64

// nesting counts what is open at a place of a text: brackets, blocks, functions, and the operators that wait for what
// stands behind them. gopher-lua's parser keeps some 600 bytes for each on a stack that nothing bounds.
type nesting struct {
	open   []waiting // of each bracket, block and function that is open, and of the chunk
	levels int       // in all
	before int       // the token before
}

// waiting are the operators of an expression that wait for what stands behind them.
type waiting struct{ concats, unaries int }

// nestedTooDeep is the error of a long text that is nested deeper than the compiler reaches: the parser is not begun.
// Where the text is no program it says nothing.
func nestedTooDeep(ctx context.Context, text, name string) error {
	scanner := parse.NewScanner(strings.NewReader(text), name)
	n := nesting{open: make([]waiting, 1)}
	for seen := 1; ; seen++ {
		token, err := scanner.Scan(&parse.Lexer{})
		if err != nil || token.Type == parse.EOF || seen%pollEvery == 0 && ctx.Err() != nil {
			return nil // which the parser says
		}
		n.token(token.Type)
		if n.levels > maxNesting {
			return overNested(name, token.Pos.Line)
		}
	}
}

// overNested is the error of a chunk that is nested too deep at a line.
func overNested(name string, line int) error {
	return fmt.Errorf("%s:%d: chunk is nested more than %d levels deep", name, line, maxNesting)
}

// token counts one token.
func (n *nesting) token(kind int) {
	top := &n.open[len(n.open)-1]
	switch kind {
	case '(', '[', '{', parse.TFunction, parse.TDo, parse.TIf, parse.TRepeat:
		if kind == parse.TDo || kind == parse.TIf || kind == parse.TRepeat {
			n.has(top, waiting{})
		}
		n.open = append(n.open, waiting{})
		n.levels++
	case ')', ']', '}', parse.TEnd, parse.TUntil:
		n.has(top, waiting{})
		if len(n.open) > 1 {
			n.open = n.open[:len(n.open)-1]
			n.levels--
		}
	case parse.T2Comma:
		n.has(top, waiting{top.concats + 1, 0})
	case parse.TNot, '#', '^':
		n.has(top, waiting{top.concats, top.unaries + 1})
	case '-':
		if endsOperand(n.before) {
			n.has(top, waiting{top.concats, 0})
		} else {
			n.has(top, waiting{top.concats, top.unaries + 1})
		}
	case '+', '*', '/', '%':
		n.has(top, waiting{top.concats, 0})
	case '.', ':', parse.TIdent, parse.TNumber, parse.TString, parse.T3Comma, parse.TNil, parse.TTrue, parse.TFalse:
	default: // comparisons, and, or, commas, assignments and words: none waits beyond them
		n.has(top, waiting{})
	}
	n.before = kind
}

// has puts other operators in the place of those that wait.
func (n *nesting) has(top *waiting, w waiting) {
	n.levels += w.concats + w.unaries - top.concats - top.unaries
	*top = w
}

// endsOperand reports whether a minus behind a token is one between two operands.
func endsOperand(kind int) bool {
	switch kind {
	case ')', ']', '}', parse.TIdent, parse.TNumber, parse.TString, parse.T3Comma, parse.TNil, parse.TTrue, parse.TFalse,
		parse.TEnd:
		return true
	}
	return false
}
