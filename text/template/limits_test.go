package template

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func mustParse(t testing.TB, source string) *Template {
	t.Helper()
	tmpl, err := Parse(source)
	require.NoError(t, err)
	return tmpl
}

// TestErrors: an error names the place.
func TestErrors(t *testing.T) {
	for source, want := range map[string]string{
		"a\n  {{ x.y }}":                "[template] line 2, column 7: 'x' is undefined",
		"{% set d = {} %}\n{{ d.a.b }}": "[template] line 2, column 7: 'dict object' has no attribute 'a'",
		"ä{% for x in 1 %}{% endfor %}": "[template] line 1, column 14: 'int' object is not iterable",
		"{{ 'é' + 1 }}":                 `[template] line 1, column 8: can only concatenate str (not "int") to str`,
		"{% if 1 %}\nx": "[template] line 2, column 2: unexpected end of template: " +
			"expected elif or else or endif for the tag 'if'",
		"x\n{{ 1 | nothing }}":        "[template] line 2, column 8: there is no filter named 'nothing'",
		"{% include 'x' %}":           "[template] line 1, column 4: the tag 'include' is not supported in chat templates",
		"{{ raise_exception('no') }}": "[template] line 1, column 19: no",
		"{{ 99999999999999999999 }}": "[template] line 1, column 4: " +
			"the integer 99999999999999999999 does not fit into 64 bits",
		"{{ 2 ** 63 }}":                  "[template] line 1, column 6: an integer does not fit into 64 bits",
		"{{ 'a' ~ strftime_now('%Q') }}": "[template] line 1, column 22: strftime_now: the directive %Q is not supported",
		"{{ {}.update({}) }}": "[template] line 1, column 13: " +
			"access to attribute 'update' of 'dict' object is unsafe.",
	} {
		_, err := render(source, NewDict())
		require.EqualError(t, err, want, source)
	}
}

// TestLimits: a template can neither hang nor take memory without end.
func TestLimits(t *testing.T) {
	many := strings.Repeat("{% for a in range(100000) %}", 3) + "{{ a }}" + strings.Repeat("{% endfor %}", 3)
	for _, c := range [][2]string{
		{many, ""}, // steps or output
		{"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "steps"},
		{"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested more than 200 deep"},
		{"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nested more than 200 deep"},
		{"{{ 'a' * 1000000000000 }}", "bytes of memory"},
		{"{{ " + strings.Repeat("(", 1<<18) + strings.Repeat(")", 1<<18) + " }}", "nested more than 200 deep"},
		{"{{ [0] * 1000000000000 }}", "bytes of memory"},
		{"{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
			"bytes of memory"},
		{"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
			"bytes of memory"},
		{"{{ 'x'.center(100000000000) }}", "bytes of memory"},
		{"{{ '%1000000000d' % 1 }}", "bytes of memory"},
		{"{{ '{:>1000000000}'.format(1) }}", "bytes of memory"},
		{"{{ '%.999999999f' % 1.5 }}", "precision"},
		{"{{ 'a' | indent(100000000000) }}", "bytes of memory"},
		{"{{ ('a' * 100000).replace('', 'b' * 100000) }}", "bytes of memory"},
		{"{{ [[1]] | tojson(indent=100000) }}", "indent"},
		{"{% for i in range(1000) %}{{ 'a' * 100000 }}{% endfor %}", "output is longer"},
		{"{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}", "nested more than 100 deep"},
		{"{% set ns = namespace() %}{% set ns.a = ns %}{{ [ns] == [ns] }}", ""},
		{"{{ [1] | batch(100000000000, 0) | list }}", "the template takes more than"},
		{"{{ [1] | slice(1000000000) | list }}", "the template takes more than"},
		{"{{ " + strings.Repeat("(", 1000) + strings.Repeat(")", 1000) + " }}", "nested more than 200 deep"},
		{strings.Repeat("{% if 1 %}", 1000), "nested more than 200 deep"},
		{"{{ " + strings.Repeat("not ", 1000) + "1 }}", "nested more than 200 deep"},
		{"{{ " + strings.Repeat("-", 1000) + "1 }}", "nested more than 200 deep"},
		{"{{ 1" + strings.Repeat("+1", 100000) + " }}", "more than 5000 parts"},
		{"{{ a" + strings.Repeat(".a", 100000) + " }}", "more than 5000 parts"},
		{strings.Repeat(" ", maxSource+1), "at most 1 MiB"},
	} {
		source, want := c[0], c[1]
		start := time.Now()
		tmpl, err := Parse(source)
		if err == nil {
			_, err = tmpl.Render(context.Background(), NewDict(), Options{Limits: Limits{Steps: 2_000_000}})
		}
		if want != "" || source == many {
			require.ErrorContains(t, err, want, "%.100s", source)
		}
		require.Less(t, time.Since(start), 20*time.Second, "%.100s", source)
	}
}

// TestManyTexts: texts beside each other are joined once.
func TestManyTexts(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tmpl := mustParse(t, "{{ "+strings.Repeat("'ab' ", 20000)+" }}")
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	text, err := tmpl.Render(context.Background(), NewDict(), Options{})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ab", 20000), text)
}

// TestContext: a context stops a template.
func TestContext(t *testing.T) {
	tmpl := mustParse(t, "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := tmpl.Render(ctx, NewDict(), Options{Limits: Limits{Steps: 1 << 60}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 10*time.Second)
	ctx, cancel2 := context.WithCancelCause(context.Background())
	cancel2(errors.New("enough"))
	_, err = mustParse(t, "x").Render(ctx, NewDict(), Options{})
	require.EqualError(t, err, "[template] stopped: enough")
}

// TestSpans: generation blocks are found again in the output.
func TestSpans(t *testing.T) {
	tmpl := mustParse(t, "ä{% for w in words %}[{% generation %}{{ w }}!{% endgeneration %}]{% endfor %}")
	vars := NewDict()
	vars.Set("words", NewList("é", "x"))
	text, spans, err := tmpl.RenderSpans(context.Background(), vars, Options{})
	require.NoError(t, err)
	require.Equal(t, "ä[é!][x!]", text)
	require.Len(t, spans, 2)
	require.Equal(t, "é!", text[spans[0].From:spans[0].To])
	require.Equal(t, "x!", text[spans[1].From:spans[1].To])
}

// TestApply: what transformers adds to a conversation.
func TestApply(t *testing.T) {
	message, err := FromGo(map[string]any{"role": "assistant", "content": "4", "reasoning": "2+2"})
	require.NoError(t, err)
	tmpl := mustParse(t, "{{ bos_token }}{{ tools is none }}{{ documents }}{{ add_generation_prompt }}"+
		"{% for m in messages %}{{ m.reasoning_content }}{{ m.thinking }}{{ m.content }}{% endfor %}")
	arguments := NewDict()
	arguments.Set("bos_token", "<s>")
	text, err := tmpl.Apply(context.Background(), Chat{Messages: NewList(message), Arguments: arguments}, Options{})
	require.NoError(t, err)
	require.Equal(t, "<s>TrueNoneFalse2+22+24", text)
	require.Equal(t, 3, message.(*Dict).Len(), "the message itself stays")
	_, err = FromGo(map[string]any{"f": func() {}})
	require.EqualError(t, err, "[template] a template has no values of Go's type func()")
}

// TestParseJSON: order and kinds survive.
func TestParseJSON(t *testing.T) {
	v, err := ParseJSON([]byte(`{"b":1,"a":[1.0,true,null,"x"],"b":2}`))
	require.NoError(t, err)
	vars := NewDict()
	vars.Set("v", v)
	text, err := render("{{ v }}", vars)
	require.NoError(t, err)
	require.Equal(t, "{'b': 2, 'a': [1.0, True, None, 'x']}", text)
	for bad, want := range map[string]string{
		`{"a":`:                    "line 1, column 6: a value is wanted, not the end of the text",
		"1\n 2":                    `line 2, column 2: there is more after the value: "2"`,
		"[\n99999999999999999999]": "line 2, column 1: the number 99999999999999999999 does not fit into 64 bits",
		"[1e999]":                  "line 1, column 2: the number 1e999 does not fit into 64 bits",
		strings.Repeat("[", 200):   "values are nested more than 100 deep",
		``:                         "line 1, column 1: a value is wanted, not the end of the text",
	} {
		_, err := ParseJSON([]byte(bad))
		require.EqualError(t, err, "[template] JSON: "+want, bad)
	}
}

// TestTake: who counts what a template makes is told of it before it is there, and can end that, with an error of his.
func TestTake(t *testing.T) {
	full := errors.New("full")
	taken := 0
	take := func(bytes int) error {
		if taken += bytes; taken > 1<<20 {
			return full
		}
		return nil
	}
	for _, source := range []string{
		"{% for i in range(1000) %}{{ 'x' * 10000 }}{% endfor %}",
		"{% for i in range(1000) %}{% set x = 'x' * 10000 %}{% endfor %}",
		"{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
	} {
		taken = 0
		tmpl := mustParse(t, source)
		_, err := tmpl.Render(context.Background(), NewDict(), Options{Limits: Limits{Take: take}})
		require.ErrorIs(t, err, full, source)
	}
	for _, text := range []string{"[" + strings.Repeat("[],", 1e5) + "1]", "[" + strings.Repeat("{},", 1e5) + "1]",
		`["` + strings.Repeat("x", 1<<20) + `"]`, `{"` + strings.Repeat("x", 2<<20) + `": 1}`} {
		taken = 0
		_, err := ReadJSON(text, take)
		require.ErrorIs(t, err, full)
	}
	taken = 0
	v, err := ReadJSON(`{"a": [1, "b"]}`, take)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, v.(*Dict).Keys())
	require.Positive(t, taken)
}
