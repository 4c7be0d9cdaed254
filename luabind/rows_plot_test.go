package luabind

import (
	"context"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Plots are printed, or written to files; what cannot be drawn is an error, and writes nothing.
func TestPlots(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	var out strings.Builder
	s := New(Options{Stdout: &out, Libraries: true})
	defer s.Close()
	dir := t.TempDir()
	run := func(script string) (string, error) {
		out.Reset()
		_, err := s.Run(context.Background(), strings.NewReader("local dir = ... "+script), "plots")
		return out.String(), err
	}
	line, err := run("mx.plot.line({0, 1, 2, 3})")
	require.NoError(t, err)
	for same := range map[string]bool{
		"mx.plot.line(mx.arange(4))": true, "mx.plot.line({0, 1, 2, 3}, mx.arange(4))": true,
		"mx.plot.line(mx.arange(4), {{0, 1, 2, 3}})": true, "mx.plot.line(mx.arange(4):reshape(4, 1))": true,
		"mx.plot.line{x = mx.arange(4):astype(mx.bfloat16)}": true,
	} {
		text, err := run(same)
		require.NoError(t, err, same)
		require.Equal(t, line, text, same)
	}
	text, err := run("mx.plot.line({1, 2}, {{1, 2}, {2, 1}}, {title = 'both', labels = {'up', 'down'}, xlabel = 'x'})")
	require.NoError(t, err)
	for _, want := range []string{"both\n", "── up\n", "── down\n", " x\n"} {
		require.Contains(t, text, want)
	}
	text, err = run("mx.plot.scatter({1, 2}, {1, 2})")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(text, "⢀")+strings.Count(text, "⡀")+strings.Count(text, "⠈")+
		strings.Count(text, "⠁"))
	text, err = run("mx.plot.hist(mx.array({1, 2, 2, 3, 4, 4, 4, 5}), 4)")
	require.NoError(t, err)
	require.Regexp(t, `^1 │█+.? 1\n2 │█+.? 2\n3 │█+.? 1\n4 │█+ 4\n5 │\n$`, text)
	text, err = run("mx.plot.image(mx.arange(8):reshape(2, 4))")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(text, "\n"))
	for file, script := range map[string]string{
		"a.svg": "mx.plot.line({1, 2}, {file = '%'})", "b.png": "mx.plot.scatter({1, 2}, {3, 4}, {file = '%'})",
		"c.PNG": "mx.plot.hist({1, 2}, {file = '%'})", "d.png": "mx.plot.image(mx.ones({3, 4}), {file = '%'})",
	} {
		path := filepath.Join(dir, file)
		text, err := run(strings.ReplaceAll(script, "%", filepath.ToSlash(path)))
		require.NoError(t, err)
		require.Empty(t, text)
		written, err := os.ReadFile(path)
		require.NoError(t, err)
		if file == "a.svg" {
			require.Contains(t, string(written), "<polyline")
			continue
		}
		img, err := png.Decode(strings.NewReader(string(written)))
		require.NoError(t, err)
		if file == "d.png" {
			require.Equal(t, 512, img.Bounds().Dx())
			require.Equal(t, 384, img.Bounds().Dy())
		}
	}
	for script, want := range map[string]string{
		"mx.plot.line({1, 2}, {1, 2, 3})": "[plot.line] x has 2 numbers and y 3",
		"mx.plot.line({1, 2}, {file = 'x.gif'})": "" +
			`file is "x.gif", want a name that ends in .png or .svg`,
		"mx.plot.line(3)": "" +
			"x is the number 3, want an array or a table of numbers",
		"mx.plot.line({})":                                                     "no point whose numbers are finite",
		"mx.plot.line({'a'})":                                                  `x has the string "a"`,
		"mx.plot.line(mx.ones({2, 2, 2}))":                                     "want one or two dimensions",
		"mx.plot.line({1, 2}, {labels = {'a', 'b'}})":                          "there are 2 labels for 1 line",
		"mx.plot.scatter(mx.array(mx.complex(1, 2)))":                          "want real numbers",
		"mx.plot.hist({1, 2}, 0)":                                              "[plot.hist] bins is 0",
		"mx.plot.image(mx.ones({2, 2}), {low = 2, high = 1})":                  "low is 2, above high, 1",
		"mx.plot.image(mx.ones({2, 2}), {file = 'x.svg'})":                     "want a name that ends in .png",
		"mx.plot.line({0/0}, {file = '" + filepath.ToSlash(dir) + "/no.png'})": "no point whose numbers are finite",
	} {
		_, err := run(script)
		require.ErrorContains(t, err, want, script)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 4, "what failed wrote nothing")
}
