package serve

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPage: each request of docs/server.md is answered.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/server.md")
	require.NoError(t, err)
	_, web := server(t, Options{})
	found := 0
	line := regexp.MustCompile(`(?m)^    curl localhost:8080(\S+)(?: -d '(.*)')?$`)
	for _, m := range line.FindAllStringSubmatch(string(page), -1) {
		found++
		method := http.MethodGet
		if m[2] != "" {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+m[1], strings.NewReader(m[2]))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode, m[0])
	}
	require.Equal(t, strings.Count(string(page), "    curl "), found)
	status, out := post(t, web, "/v1/completions", `{"prompt": "x", "nope": 1}`)
	require.Equal(t, 400, status)
	require.Contains(t, string(page), encoded(out["error"].(object)["message"]))
}

// TestChatPage: the page and what it loads are there, and nothing of it comes from elsewhere.
func TestChatPage(t *testing.T) {
	_, web := server(t, Options{Keys: []string{"sesame"}})
	for path, want := range map[string]string{"/": "page.js", "/page.js": "v1/chat/completions", "/page.css": "article"} {
		resp, err := http.Get(web.URL + path)
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode, path)
		require.Contains(t, string(b), want)
		require.NotContains(t, string(b), "http://")
		require.NotContains(t, string(b), "https://")
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'self'")
	}
}
