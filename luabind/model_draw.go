package luabind

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/text/draw"
	"github.com/mlxlua/mlxlua/text/grammar"
	"github.com/mlxlua/mlxlua/text/tokenizer"
)

// drawerBytes is what a drawer takes, beside its copy of the scores.
const drawerBytes = 8 << 10

// newDrawer is an object that chooses the tokens of one text, for draw: of a table of rules, the list of tokens that
// the text has begun with, and how many tokens there are. The rules are temp, top_p, min_p, min_tokens_to_keep, top_k,
// seed, logit_bias, repetition_penalty, presence_penalty, frequency_penalty, context_size and form, what
// grammar of a tokenizer gives. It gives the object and
// nothing else; rules that cannot be meant are an error.
func newDrawer(s *State, L *lua.LState) (lua.LValue, error) {
	t, words := L.CheckTable(1), L.CheckInt(3)
	past, wrong := tokenNumbers(L.CheckTable(2))
	if wrong != "" {
		return nil, fmt.Errorf("the text: %s", wrong)
	}
	var rules draw.Rules
	for name, into := range map[string]*float64{"temp": &rules.Temperature, "top_p": &rules.TopP, "min_p": &rules.MinP,
		"repetition_penalty": &rules.Repetition, "presence_penalty": &rules.Presence,
		"frequency_penalty": &rules.Frequency} {
		if err := numberOf(t, name, into); err != nil {
			return nil, err
		}
	}
	for name, into := range map[string]*int{"min_tokens_to_keep": &rules.MinKeep, "top_k": &rules.TopK,
		"context_size": &rules.Context} {
		var n float64
		if err := numberOf(t, name, &n); err != nil {
			return nil, err
		}
		if n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
			return nil, fmt.Errorf("%s is %v, want an integer", name, n)
		}
		*into = int(n)
	}
	var seed float64
	if err := numberOf(t, "seed", &seed); err != nil {
		return nil, err
	}
	rules.Seed = uint64(int64(seed))
	if bias, ok := t.RawGetString("logit_bias").(*lua.LTable); ok {
		rules.Bias = map[int32]float64{}
		for k, v := bias.Next(lua.LNil); k != lua.LNil; k, v = bias.Next(k) {
			id, isID := k.(lua.LNumber)
			n, isNumber := v.(lua.LNumber)
			if !isID || !isNumber || float64(id) != float64(int32(id)) {
				return nil, fmt.Errorf("logit_bias has %s for the token %s, want {[token] = number}", describe(v), describe(k))
			}
			rules.Bias[int32(id)] = float64(n)
		}
	}
	if err := rules.Check(words); err != nil {
		return nil, err
	}
	var form draw.Grammar
	if u, ok := t.RawGetString("form").(*lua.LUserData); ok {
		form, _ = u.Value.(draw.Grammar)
	}
	return s.NewUserData(draw.New(rules, past, form), lua.LNil, int64(drawerBytes+8*words)), nil
}

// numberOf reads a number of a table, if it is there.
func numberOf(t *lua.LTable, name string, into *float64) error {
	switch v := t.RawGetString(name).(type) {
	case *lua.LNilType:
	case lua.LNumber:
		*into = float64(v)
	default:
		return fmt.Errorf("%s is %s, want a number", name, describe(v))
	}
	return nil
}

// drawTokens chooses the next token of several texts: of scores (texts, vocabulary), a list of their drawers, in which
// false is a text that takes the best token, and a list that says of each text how many of the best tokens are wanted
// with their probabilities, false for none. It gives a list with a table for each text: token, and logprob and best, a
// list of {token, logprob}, where they were wanted; or why, what went wrong with this text.
func drawTokens(s *State, L *lua.LState) (lua.LValue, error) {
	x, ok := array(L.CheckAny(1))
	drawers, ranks := L.CheckTable(2), L.CheckTable(3)
	if !ok || x.NDim() != 2 {
		return nil, fmt.Errorf("the scores are %s, want an array (texts, vocabulary)", describe(L.CheckAny(1)))
	}
	rows, words := x.Shape()[0], x.Shape()[1]
	if drawers.Len() != rows {
		return nil, fmt.Errorf("there are %s for %s of scores", tensor.Count(drawers.Len(), "drawer"),
			tensor.Count(rows, "row"))
	}
	bytes, err := ops.AsType(x, tensor.Float32).Bytes(s.Context())
	if err != nil {
		return nil, err
	}
	out, scores := s.NewTable(rows, 0), make([]float32, words)
	for i := range rows {
		for j := range scores {
			scores[j] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*(i*words+j):]))
		}
		best := -1
		if n, ok := ranks.RawGetInt(i + 1).(lua.LNumber); ok {
			best = int(n)
		}
		d := draw.New(draw.Rules{}, nil, nil)
		if u, ok := drawers.RawGetInt(i + 1).(*lua.LUserData); ok {
			if own, ok := u.Value.(*draw.Drawer); ok {
				d = own
			}
		}
		out.Append(drawnToken(s, d, scores, best))
	}
	return out, nil
}

// drawnToken is what one drawer chooses, as a table.
func drawnToken(s *State, d *draw.Drawer, scores []float32, best int) lua.LValue {
	t := s.NewTable(0, 3)
	c, err := d.Draw(scores, best)
	if err != nil {
		t.RawSetString("why", lua.LString(err.Error()))
		return t
	}
	t.RawSetString("token", lua.LNumber(c.Token))
	if best < 0 {
		return t
	}
	t.RawSetString("logprob", lua.LNumber(c.LogProb))
	list := s.NewTable(len(c.Best), 0)
	for _, b := range c.Best {
		pair := s.NewTable(2, 0)
		pair.Append(lua.LNumber(b.Token))
		pair.Append(lua.LNumber(b.LogProb))
		list.Append(pair)
	}
	t.RawSetString("best", list)
	return t
}

// grammarBytes is what a compiled form takes, about.
const grammarBytes = 4 << 20

// mostForms is how many compiled forms a tokenizer keeps.
const mostForms = 32

// grammars is grammar(form, size, ends, after) of a tokenizer: what may come next in a text of a form, which is JSON as
// text/grammar has it, for size tokens of which ends end a text; it begins behind a text. nil, and why, of a form
// that cannot be held to.
func grammars(s *State, tok *tokenizer.Tokenizer) lua.LGFunction {
	var words *grammar.Words
	known := map[string]*grammar.Automaton{}
	return func(L *lua.LState) int {
		text, size := L.CheckString(1), L.CheckInt(2)
		fail := func(why string) int {
			L.Push(lua.LNil)
			L.Push(lua.LString(why))
			return 2
		}
		if words == nil {
			ends, wrong := tokenNumbers(L.CheckTable(3))
			if wrong != "" {
				return fail(wrong)
			}
			words = grammar.NewWords(size, func(id int32) ([]byte, bool, bool) {
				b, ok := tok.TokenBytes(id)
				return b, tok.IsSpecial(id), ok
			}, ends)
		}
		a := known[text]
		if a == nil {
			var form grammar.Form
			err := json.Unmarshal([]byte(text), &form)
			if err == nil {
				a, err = grammar.Compile(form, words)
			}
			if err != nil {
				return fail(err.Error())
			}
			if len(known) >= mostForms {
				clear(known)
			}
			known[text] = a
		}
		L.Push(s.NewUserData(draw.Grammar(a.Begin(L.OptString(4, ""))), lua.LNil, grammarBytes))
		return 1
	}
}
