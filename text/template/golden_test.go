package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// golden is one case of golden.json: [template, name of the variables, text or null, message of raise_exception or
// null].
type golden struct {
	source, vars  string
	text, message *string
}

func (g *golden) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&g.source, &g.vars, &g.text, &g.message})
}

// clock is the time at which golden.py lets its clock stand.
func clockStands() time.Time { return time.Date(2026, 3, 7, 9, 5, 8, 12345000, time.UTC) }

func readGolden(t testing.TB) (vars map[string]*Dict, cases []golden) {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var file struct {
		Vars  map[string]json.RawMessage
		Cases []golden
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	vars = map[string]*Dict{}
	for name, raw := range file.Vars {
		v, err := ParseJSON(raw)
		require.NoError(t, err)
		vars[name] = v.(*Dict)
	}
	for i, c := range file.Cases {
		if strings.HasPrefix(c.source, "chat/") {
			text, err := os.ReadFile(filepath.Join("testdata", c.source))
			require.NoError(t, err)
			file.Cases[i].source = string(text)
		}
	}
	return vars, file.Cases
}

func render(source string, vars *Dict) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(context.Background(), vars, Options{Now: clockStands})
}

// TestUnbuilt: what jinja2 has and is not built here is an error that names it, when a template is read, or in an if
// when it runs; so is what a Markup does otherwise than any text.
func TestUnbuilt(t *testing.T) {
	for source, want := range map[string]string{
		"a{{ x | urlize }}":                           "the filter 'urlize' of jinja2 is not built",
		"{{ x | wordwrap(3) }}":                       "the filter 'wordwrap' of jinja2 is not built",
		"{{ [1] | random }}":                          "the filter 'random' of jinja2 is not built",
		"{{ x | pprint }}":                            "the filter 'pprint' of jinja2 is not built",
		"{% if true %}{{ x | pprint }}{% endif %}":    "the filter 'pprint' of jinja2 is not built",
		"{{ ['a'] | map('pprint') | list }}":          "the filter 'pprint' of jinja2 is not built",
		"{{ ('{}' | safe).format(1) }}":               "format of a Markup is not built",
		"{{ ('%r' | safe) % 'a' }}":                   "a Markup with %r or %a is not built",
		"{{ 'a' | indent('>' | safe) }}":              "indent with an argument that is a Markup is not built",
		"{% set a = 'x' | safe %}{{ a is sameas a }}": "sameas of a Markup is not built",
	} {
		_, err := render(source, NewDict())
		require.ErrorContains(t, err, want, source)
	}
	_, err := Parse("{{ x | urlize }}")
	require.Error(t, err)
	_, err = Parse("{% if x %}{{ x | urlize }}{% endif %}")
	require.NoError(t, err)
}

// TestGolden: templates give what they give in transformers, and fail where they fail there.
func TestGolden(t *testing.T) {
	vars, cases := readGolden(t)
	require.Greater(t, len(cases), 300)
	rendered := 0
	for _, c := range cases {
		got, err := render(c.source, vars[c.vars])
		what := fmt.Sprintf("%.300s with %s", c.source, c.vars)
		var e *Error
		switch {
		case c.text != nil && err != nil:
			t.Errorf("%s:\n%v\nwant %q", what, err, *c.text)
		case c.text != nil && got != *c.text:
			t.Errorf("%s:\ngot  %q\nwant %q", what, got, *c.text)
		case c.text != nil:
			rendered++
		case err == nil:
			t.Errorf("%s: fails in Python, but gives %q", what, got)
		case !errors.As(err, &e) || e.Line < 1 || e.Column < 1:
			t.Errorf("%s: %v has no place", what, err)
		case *c.message != "" && (e.Message != *c.message || !e.Raised):
			t.Errorf("%s: raises %q, want %q", what, e.Message, *c.message)
		}
	}
	t.Logf("%d of %d cases render, the others fail, as in Python", rendered, len(cases))
}
