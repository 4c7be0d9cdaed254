package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// server is a handler at work, the files of which the test writes, and what it reported.
type server struct {
	*httptest.Server
	files   fstest.MapFS
	mu      sync.Mutex
	reports []string
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{files: fstest.MapFS{"score.lua": {Data: []byte(scoreText)}}}
	h, err := NewHandler(t.Context(), s.files, func(format string, v ...any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reports = append(s.reports, fmt.Sprintf(format, v...))
	})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	s.Server = httptest.NewServer(h)
	t.Cleanup(s.Server.Close)
	return s
}

func (s *server) post(source string) (int, Reply, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL, strings.NewReader(source))
	if err != nil {
		return 0, Reply{}, err
	}
	response, err := s.Client().Do(request)
	if err != nil {
		return 0, Reply{}, err
	}
	defer response.Body.Close()
	var reply Reply
	if response.Header.Get("Content-Type") == "application/json" {
		err = json.NewDecoder(response.Body).Decode(&reply)
	}
	return response.StatusCode, reply, err
}

// TestHandler: what scripts give, and how those end that want more than they may have.
func TestHandler(t *testing.T) {
	s := serve(t)
	for _, c := range []struct {
		name, source string
		status       int
		want         Reply
		contains     string // in the error, where that is given
	}{
		{"results", `print("hello") return 1, mx.array({{1, 2}, {3, 4}}), {a = true}`, 200,
			Reply{Results: []any{1.0, []any{[]any{1.0, 2.0}, []any{3.0, 4.0}}, map[string]any{"a": true}},
				Output: "hello\n"}, ""},
		{"the host's function", `local y = score(mx.ones({2, 2}), mx.zeros({2, 4})) return y[1][1]:item()`, 200,
			Reply{Results: []any{0.25}}, ""},
		{"not a number", `return 0/0`, 200, Reply{Results: []any{"NaN"}}, ""},
		{"an error's value", "\nerror({code = 5})", 422, Reply{Value: map[string]any{"code": 5.0}, File: "script", Line: 2},
			"table"},
		{"no Lua", "return return", 422, Reply{}, "script"},
		{"a function as result", `return print`, 422, Reply{}, "json"},
		{"a loop", `while true do end`, 408, Reply{Limit: true}, "time"},
		{"memory", `local t = {} while true do t = {t} end`, 408, Reply{Limit: true}, "[limits]"},
		{"arrays", `return mx.random.normal({1e9})`, 408, Reply{Limit: true}, "limit"},
		{"a table in many places", `local t = {1} for i = 1, 40 do t = {t, t} end return t`, 408, Reply{Limit: true},
			"many places"},
		{"such a table as an error", `local t = {1} for i = 1, 40 do t = {t, t} end error(t)`, 422,
			Reply{File: "script", Line: 1}, "table"},
		{"a coroutine as result", `return coroutine.create(function() end)`, 422, Reply{},
			"of type *lua.LState, which json has not"},
		{"a deep metatable", `local t = {} for i = 1, 1e4 do t = setmetatable({}, t) end setmetatable(_G, t)
			return mx.cpu`, 422, Reply{}, "json"},
		{"a list that is not a number", `return {0/0}`, 422, Reply{}, "result[1][1] is NaN, which json has not"},
		{"a function in a table", `return 1, {b = {1, print}, a = {}}`, 422, Reply{},
			"result[2].b[2] is a function, which json has not"},
		{"a long result", `return mx.zeros({1e7})`, 408, Reply{Limit: true}, "limit"},
		{"output", `while true do print("x") end`, 422, Reply{}, "output is longer"},
		{"files", `return mx.load("/etc/passwd", "npy")`, 422, Reply{}, "no access to files"},
		{"a long text", "return 1" + strings.Repeat(" ", sourceLimit), 413, Reply{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, reply, err := s.post(c.source)
			require.NoError(t, err)
			require.Equal(t, c.status, status, reply)
			require.Contains(t, reply.Error, c.contains)
			if c.contains != "" {
				require.NotEmpty(t, reply.Error)
				c.want.Error, c.want.Output = reply.Error, reply.Output
			}
			if c.want.Line == 0 {
				c.want.File, c.want.Line = reply.File, reply.Line
			}
			require.Equal(t, c.want, reply)
		})
	}
	response, err := s.Client().Get(s.URL)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
}

// TestHandlerReloads: a new score.lua is what later users find; a broken one is reported, and the one before stays.
func TestHandlerReloads(t *testing.T) {
	s := serve(t)
	for _, c := range []struct {
		text    string
		want    float64
		reports int
	}{
		{"function score() return 1 end", 1, 0},
		{"function score() return 2", 1, 1},
		{"error('not today')", 1, 2},
		{"function score() return 3 end", 3, 2},
	} {
		s.files["score.lua"] = &fstest.MapFile{Data: []byte(c.text)}
		status, reply, err := s.post("return score()")
		require.NoError(t, err)
		require.Equal(t, 200, status, reply)
		require.Equal(t, []any{c.want}, reply.Results)
		require.Len(t, s.reports, c.reports)
	}
	require.Contains(t, s.reports[1], "not today")
	_, err := NewHandler(t.Context(), fstest.MapFS{}, t.Logf)
	require.ErrorContains(t, err, "score.lua")
}

// TestScoreFiles: score.lua is part of the program, and a folder takes its place.
func TestScoreFiles(t *testing.T) {
	files, err := scoreFiles("")
	require.NoError(t, err)
	require.NoError(t, fstest.TestFS(files, "score.lua"))
	h, err := NewHandler(t.Context(), files, t.Logf)
	require.NoError(t, err)
	h.Close()
	files, err = scoreFiles(t.TempDir())
	require.NoError(t, err)
	_, err = NewHandler(t.Context(), files, t.Logf)
	require.ErrorContains(t, err, "score.lua")
}

// TestHandlerManyUsers: users at once see nothing of each other, also beside those who want too much.
func TestHandlerManyUsers(t *testing.T) {
	s := serve(t)
	var users sync.WaitGroup
	for i := range 40 {
		users.Go(func() {
			source, want := fmt.Sprintf(`mine = %d local x = mx.ones({100}) * mine return x:sum():item(), mine`, i), 200
			if i%8 == 0 {
				source, want = `kept = {} while true do kept[#kept + 1] = {} end`, 408
			}
			status, reply, err := s.post(source)
			switch {
			case err != nil:
				t.Error(err)
			case status != want:
				t.Errorf("user %d: status %d: %v", i, status, reply)
			case want == 200 && (reply.Results[0] != float64(100*i) || reply.Results[1] != float64(i)):
				t.Errorf("user %d: %v", i, reply.Results)
			}
		})
	}
	users.Wait()
}
