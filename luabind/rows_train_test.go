package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a terminal a line gives way to the next one; elsewhere each is a line, and a progress writes one in ten seconds.
func TestStatus(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	showStatus(&out, "one", false, true)
	showStatus(&out, strings.Repeat("ü", 90), false, true)
	showStatus(&out, "two\x1b[2J\nlines", true, true)
	require.Equal(t, "\rone\x1b[K\r"+strings.Repeat("ü", 79)+"\x1b[K\rtwo [2J lines\x1b[K\n", out.String())

	out.Reset()
	stands := true
	for _, text := range []string{"a", "b"} {
		_, err := besideStatus{&stands, &out, &out}.Write([]byte(text))
		require.NoError(t, err)
	}
	require.Equal(t, "\r\x1b[Kab", out.String(), "what is printed takes the line's place")

	out.Reset()
	s := New(Options{Stdout: &strings.Builder{}, Stderr: &out})
	t.Cleanup(s.Close)
	_, err := s.Run(context.Background(), strings.NewReader(`
		assert(not mx.train.is_terminal())
		mx.train.status("a line", false)
		local now = 0
		local p = mx.train.Progress(100, {label = "work", clock = function() return now end})
		for i = 1, 100 do
			p:step("note " .. i)
			now = now + 0.25
		end
		p:close()
		p:close()
	`), "status")
	require.NoError(t, err)
	require.Equal(t, "a line\n"+
		"work   41 %  41/100  4.0/s  0:15 left  note 41\n"+
		"work   81 %  81/100  4.0/s  0:05 left  note 81\n"+
		"work  100 %  100/100  4.0/s  note 100  in 0:25\n", out.String())
}
