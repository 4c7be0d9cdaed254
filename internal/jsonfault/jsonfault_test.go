package jsonfault

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	for text, want := range map[string]string{
		"":                             `line 1, column 1: a value is wanted, not the end of the text`,
		"{\n \"a\": 1,\n \"b\" 2}":     `line 3, column 6: a colon after the key is wanted, not "2"`,
		`{"ä": 1 "b": 2}`:              `line 1, column 9: a comma or } is wanted, not "\""`,
		`{"a": [1, 2}`:                 `line 1, column 12: a comma or ] is wanted, not "}"`,
		`{"a": [1, 2`:                  `line 1, column 12: a comma or ] is wanted, not the end of the text`,
		`{"a": 1,}`:                    `line 1, column 9: a key in double quotes is wanted, not "}"`,
		`[1,]`:                         `line 1, column 4: a value is wanted, not "]"`,
		`{a: 1}`:                       `line 1, column 2: a key in double quotes is wanted, not "a"`,
		`{'a': 1}`:                     `line 1, column 2: a key in double quotes is wanted, not "'"`,
		`[True]`:                       `line 1, column 2: a value is wanted, not "True"`,
		`[NaN]`:                        `line 1, column 2: a value is wanted, not "NaN"`,
		`nulls`:                        `line 1, column 5: there is more after the value: "s"`,
		`{} {}`:                        `line 1, column 4: there is more after the value: "{"`,
		"[1]\x00":                      `line 1, column 4: there is more after the value: "\x00"`,
		`["abc]`:                       `line 1, column 2: the quotes that open here are never closed`,
		`["abc\`:                       `line 1, column 2: the quotes that open here are never closed`,
		`["abc\u12`:                    `line 1, column 2: the quotes that open here are never closed`,
		"[\"a\nb\"]":                   `line 1, column 4: '\n' stands within quotes: it is written by a backslash there`,
		`["\q"]`:                       `line 1, column 3: a backslash before "q" means nothing`,
		`["\u12g4"]`:                   `line 1, column 3: four hexadecimal digits are wanted after \u`,
		`[01]`:                         `line 1, column 2: a number begins with 0`,
		`[-]`:                          `line 1, column 3: a digit is wanted, not "]"`,
		`[1.]`:                         `line 1, column 4: a digit after the point is wanted, not "]"`,
		`[1e+]`:                        `line 1, column 5: a digit of the exponent is wanted, not "]"`,
		`[.5]`:                         `line 1, column 2: a value is wanted, not "."`,
		`[abcdefghijklmnopqrstuvwxyz]`: `line 1, column 2: a value is wanted, not "abcdefghijklmnopqrst"...`,
		"\ufeff{}":                     "line 1, column 1: a value is wanted, not \"\\ufeff\"",
	} {
		require.EqualError(t, Find(text), want, "%q", text)
		require.False(t, json.Valid([]byte(text)), text)
		err := json.Unmarshal([]byte(text), new(any))
		require.EqualError(t, Explain(text, fmt.Errorf("reading: %w", err)), want)
	}
}

// What Go's package takes for JSON has no fault, and the other way round.
func TestFindAgrees(t *testing.T) {
	const good = `{"a\u00e9\n": [1, -2.5e-3, 0, true, false, null, {}, [], {"b": "c\\"}, "ü"], "d": {"e": [[]]}}`
	require.Nil(t, Find(good))
	pieces := []string{"{", "}", "[", "]", ",", ":", `"`, `\`, "0", "1", "-", ".", "e", "u", " ", "\n", "true", "null",
		"a", "\x01", "é"}
	r := rand.New(rand.NewPCG(1, 2))
	faults := 0
	for range 200000 {
		text := good
		for range 1 + r.IntN(2) {
			at, n := r.IntN(len(text)), r.IntN(3)
			text = text[:at] + pieces[r.IntN(len(pieces))] + text[min(at+n, len(text)):]
		}
		f := Find(text)
		require.Equal(t, json.Valid([]byte(text)), f == nil, "%s: %v", text, f)
		if f != nil {
			faults++
			require.LessOrEqual(t, f.At, len(text))
		}
	}
	require.Greater(t, faults, 50000)
	require.Nil(t, Find(strings.Repeat("[", 20000)+strings.Repeat("]", 20000)))
}

func TestExplain(t *testing.T) {
	var to struct {
		Name  string   `json:"name"`
		Sizes []uint64 `json:"sizes"`
		ID    *int32   `json:"id"`
		Yes   bool     `json:"yes"`
		Score float64  `json:"score"`
		Of    struct {
			Map map[string]string `json:"map"`
		} `json:"of"`
	}
	for text, want := range map[string]string{
		`{"name": 1}`:              "name is a number, want a text",
		`{"sizes": "x"}`:           "sizes is a text, want a list",
		`{"sizes": [-1]}`:          "sizes is the number -1, want a whole number of 64 bits that is not negative",
		`{"id": 3000000000}`:       "id is the number 3000000000, want a whole number of 32 bits",
		`{"yes": []}`:              "yes is a list, want true or false",
		`{"score": true}`:          "score is true or false, want a number",
		`{"of": {"map": [1]}}`:     "of.map is a list, want an object",
		`{"of": {"map": {"a":1}}}`: "of.map is a number, want a text",
		`[1]`:                      "it is a list, want an object",
	} {
		require.EqualError(t, Explain(text, json.Unmarshal([]byte(text), &to)), want, text)
	}
	require.NoError(t, Explain("", nil))
	other := fmt.Errorf("another")
	require.Equal(t, other, Explain("", other))
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	require.EqualError(t, Explain(deep, json.Unmarshal([]byte(deep), new(any))), "lists and objects are nested too deep")
}
