package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
)

const template = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}` +
	`{% if add_generation_prompt %}<assistant>{% endif %}`

// tiny is a directory with a random model of 600 tokens, which has a tokenizer and a chat template.
var tiny = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mlxlua-serve")
	if err != nil {
		return "", err
	}
	folder, err := filepath.Abs("../luabind/testdata/lm")
	if err != nil {
		return "", err
	}
	s, err := mlxlua.Open(mlxlua.Options{Libraries: true})
	if err != nil {
		return "", err
	}
	defer s.Close()
	dir = filepath.Join(dir, "tiny")
	if _, err = s.RunFile(context.Background(), filepath.Join(folder, "tiny.lua"), folder, dir,
		"../text/tokenizer/testdata/llama3.json"); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o644)
})

func TestMain(m *testing.M) {
	status := m.Run()
	if dir, err := tiny(); err == nil {
		_ = os.RemoveAll(filepath.Dir(dir))
	}
	os.Exit(status)
}

// server is a Server of the tiny model that listens.
func server(t *testing.T, opt Options) (*Server, *httptest.Server) {
	t.Helper()
	dir, err := tiny()
	require.NoError(t, err)
	if opt.Models == nil {
		opt.Models = []Model{{Name: "tiny", Path: dir}}
	}
	opt.Errors = func(err error) { t.Log("the server reports:", err) }
	s, err := New(opt)
	require.NoError(t, err)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
	})
	return s, web
}

type object = map[string]any

// post sends a body and gives the status and the answer.
func post(t *testing.T, web *httptest.Server, path string, body any) (int, object) {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		require.NoError(t, err)
		text = string(b)
	}
	resp, err := http.Post(web.URL+path, "application/json", strings.NewReader(text))
	require.NoError(t, err)
	defer resp.Body.Close()
	var out object
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out), "%s", b)
	return resp.StatusCode, out
}

// ask is post of what succeeds.
func ask(t *testing.T, web *httptest.Server, path string, body any) object {
	t.Helper()
	status, out := post(t, web, path, body)
	require.Equal(t, 200, status, out)
	return out
}

// events are those of a streamed answer.
func events(t *testing.T, web *httptest.Server, path string, body object) (out []object) {
	t.Helper()
	body["stream"] = true
	b, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := http.Post(web.URL+path, "application/json", bytes.NewReader(b))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	done := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		require.False(t, done)
		var v object
		require.NoError(t, json.Unmarshal([]byte(data), &v))
		out = append(out, v)
	}
	require.NoError(t, lines.Err())
	require.True(t, done)
	return out
}

func choice(o object, i int) object { return o["choices"].([]any)[i].(object) }

// said is what lm's session answers to a prompt, greedily.
func said(t *testing.T, prompt string, most int, bare ...bool) string {
	t.Helper()
	dir, err := tiny()
	require.NoError(t, err)
	s, err := mlxlua.Open(mlxlua.Options{Libraries: true})
	require.NoError(t, err)
	defer s.Close()
	out, err := s.Run(t.Context(), "said", `
		local dir, prompt, most, special = ...
		local session, out = require("lm").open(dir), {}
		for piece in session:answer(session:tokens(prompt, special), {max_tokens = most}) do out[#out + 1] = piece end
		return table.concat(out)`, dir, prompt, most, len(bare) == 0)
	require.NoError(t, err)
	return out[0].(string)
}

// TestCompletions: answers are those of lm's sessions, at once, piece by piece and several together.
func TestCompletions(t *testing.T) {
	_, web := server(t, Options{})
	want := said(t, "hello there", 12)
	body := func(more object) object {
		o := object{"model": "tiny", "prompt": "hello there", "temperature": 0, "max_tokens": 12}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	out := ask(t, web, "/v1/completions", body(nil))
	require.Equal(t, want, choice(out, 0)["text"])
	require.Equal(t, "length", choice(out, 0)["finish_reason"])
	require.Equal(t, "text_completion", out["object"])
	usage := out["usage"].(object)
	require.EqualValues(t, 12, usage["completion_tokens"])
	require.EqualValues(t, usage["total_tokens"], usage["prompt_tokens"].(float64)+12)

	again := ask(t, web, "/v1/completions", body(nil))
	require.Equal(t, want, choice(again, 0)["text"])
	cached := again["usage"].(object)["prompt_tokens_details"].(object)["cached_tokens"]
	require.EqualValues(t, usage["prompt_tokens"].(float64)-1, cached, "all but the last token was read before")

	text := ""
	pieces := events(t, web, "/v1/completions", body(object{"stream_options": object{"include_usage": true}}))
	for _, v := range pieces[:len(pieces)-1] {
		text += choice(v, 0)["text"].(string)
	}
	require.Equal(t, want, text)
	require.EqualValues(t, 12, pieces[len(pieces)-1]["usage"].(object)["completion_tokens"])

	// a text that ends the answer, which no piece has the beginning of
	stop := want[3:6]
	for _, v := range events(t, web, "/v1/completions", body(object{"stop": stop})) {
		if choice(v, 0)["finish_reason"] != nil {
			require.Equal(t, "stop", choice(v, 0)["finish_reason"])
		}
	}
	out = ask(t, web, "/v1/completions", body(object{"stop": []string{"never said", stop}}))
	require.Equal(t, want[:strings.Index(want, stop)], choice(out, 0)["text"])

	// several prompts and answers, in their order, each with random numbers of its own
	out = ask(t, web, "/v1/completions", body(object{"prompt": []string{"hello there", "other"}, "n": 2}))
	require.Len(t, out["choices"], 4)
	require.Equal(t, want, choice(out, 1)["text"])
	require.Equal(t, said(t, "other", 12), choice(out, 3)["text"])
	drawn := body(object{"temperature": 1, "seed": 7, "n": 3, "echo": true})
	first, second := ask(t, web, "/v1/completions", drawn), ask(t, web, "/v1/completions", drawn)
	require.Equal(t, first["choices"], second["choices"])
	require.NotEqual(t, choice(first, 0)["text"], choice(first, 1)["text"])
	require.True(t, strings.HasPrefix(choice(first, 0)["text"].(string), "hello there"))

	// tokens, and their probabilities
	out = ask(t, web, "/v1/completions", body(object{"prompt": []int{259, 75, 283}, "logprobs": 3, "max_tokens": 4}))
	probs := choice(out, 0)["logprobs"].(object)
	require.Len(t, probs["tokens"], 4)
	for i, best := range probs["top_logprobs"].([]any) {
		require.Len(t, best, 3)
		for _, v := range best.(object) {
			require.LessOrEqual(t, v, probs["token_logprobs"].([]any)[i], "the best one is taken")
		}
	}
}

// TestChat: conversations go through the chat template.
func TestChat(t *testing.T) {
	_, web := server(t, Options{})
	want := said(t, "<user>hello there<assistant>", 9, true)
	body := func() object {
		return object{"messages": []object{{"role": "user", "content": "hello there"}}, "temperature": 0,
			"max_completion_tokens": 9}
	}
	out := ask(t, web, "/v1/chat/completions", body())
	require.Equal(t, object{"role": "assistant", "content": want, "refusal": nil}, choice(out, 0)["message"])
	parts := body()
	parts["messages"] = []object{{"role": "user", "content": []object{{"type": "text", "text": "hello "}, {"type": "text",
		"text": "there"}}}}
	out = ask(t, web, "/v1/chat/completions", parts)
	require.Equal(t, want, choice(out, 0)["message"].(object)["content"])

	text, probs := "", 0
	streamed := body()
	streamed["logprobs"], streamed["top_logprobs"] = true, 2
	pieces := events(t, web, "/v1/chat/completions", streamed)
	require.Equal(t, "assistant", choice(pieces[0], 0)["delta"].(object)["role"])
	for _, v := range pieces {
		if s, ok := choice(v, 0)["delta"].(object)["content"].(string); ok {
			text += s
		}
		if l, ok := choice(v, 0)["logprobs"].(object); ok {
			probs += len(l["content"].([]any))
		}
	}
	require.Equal(t, want, text)
	require.Equal(t, 9, probs)
	require.Equal(t, "length", choice(pieces[len(pieces)-1], 0)["finish_reason"])

	biased := body()
	biased["logit_bias"] = object{"75": 100}
	out = ask(t, web, "/v1/chat/completions", biased)
	require.NotEqual(t, want, choice(out, 0)["message"].(object)["content"])
}

// TestBadRequests get the status and the body that OpenAI's API gives, with the field that is wrong.
func TestBadRequests(t *testing.T) {
	_, web := server(t, Options{Context: 64, MostBody: 4000})
	long := strings.Repeat("hello there ", 100)
	messages := `"messages": [{"role": "user", "content": "x"}]`
	for _, c := range []struct {
		path, body  string
		status      int
		param, text string
	}{
		{"completions", `{`, 400, "", "no JSON object"},
		{"completions", `[]`, 400, "", "no JSON object"},
		{"completions", `{} {}`, 400, "", "more after"},
		{"completions", `{"prompt": "x"}}`, 400, "", "more after"},
		{"completions", `{}`, 400, "prompt", "must provide a prompt"},
		{"completions", `{"prompt": []}`, 400, "prompt", "want a text"},
		{"completions", `{"prompt": [600]}`, 400, "prompt", "want a token from 0 to 599"},
		{"completions", `{"prompt": {"a": 1}}`, 400, "prompt", "want a text"},
		{"completions", `{"prompt": "x", "model": "gpt-9"}`, 404, "model", "does not exist"},
		{"completions", `{"prompt": "x", "nope": 1}`, 400, "nope", "Unrecognized request argument supplied: nope"},
		{"completions", `{"prompt": "x", "temperature": -1}`, 400, "temperature", "from 0 to 100"},
		{"completions", `{"prompt": "x", "temperature": "hot"}`, 400, "temperature", "want a number"},
		{"completions", `{"prompt": "x", "top_p": 2}`, 400, "top_p", "from 0 to 1"},
		{"completions", `{"prompt": "x", "max_tokens": 0}`, 400, "max_tokens", "from 1"},
		{"completions", `{"prompt": "x", "max_tokens": 100}`, 400, "max_tokens", "64 at most"},
		{"completions", `{"prompt": "` + long + `"}`, 400, "prompt", "64 at most"},
		{"completions", `{"prompt": "` + long + long + long + long + `"}`, 413, "", "more than 4000 bytes"},
		{"completions", `{"prompt": "x", "n": 1000}`, 400, "n", "from 1 to 128"},
		{"completions", `{"prompt": "x", "stop": ["a", ""]}`, 400, "stop", "empty"},
		{"completions", `{"prompt": "x", "logit_bias": {"9999": 1}}`, 400, "logit_bias", "600"},
		{"completions", `{"prompt": "x", "logit_bias": {"a": 1}}`, 400, "logit_bias", "number of a token"},
		{"completions", `{"prompt": "x", "suffix": "y"}`, 400, "suffix", "not supported"},
		{"completions", `{"prompt": "x", "best_of": 3}`, 400, "best_of", "only where it is n"},
		{"completions", `{"prompt": "x", "stream_options": {}}`, 400, "stream_options", "only allowed"},
		{"chat/completions", `{}`, 400, "messages", "must provide messages"},
		{"chat/completions", `{"messages": []}`, 400, "messages", "empty"},
		{"chat/completions", `{"messages": [{"role": "king", "content": "x"}]}`, 400, "messages", "king"},
		{"chat/completions", `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, 400, "messages",
			"no pictures"},
		{"chat/completions", `{"messages": [{"role": "user", "contents": "x"}]}`, 400, "messages",
			"messages[0]: Unrecognized request argument supplied: contents"},
		{"chat/completions", `{` + messages + `, "audio": {}}`, 400, "audio", "Unrecognized"},
		{"chat/completions", `{` + messages + `, "top_logprobs": 3}`, 400, "top_logprobs", "needs logprobs"},
		{"chat/completions", `{` + messages + `, "modalities": ["audio"]}`, 400, "modalities", "not supported"},
	} {
		status, out := post(t, web, "/v1/"+c.path, c.body)
		require.Equal(t, c.status, status, "%s: %v", c.body, out)
		e := out["error"].(object)
		require.Contains(t, e["message"], c.text, c.body)
		require.Equal(t, "invalid_request_error", e["type"])
		if c.param == "" {
			require.Nil(t, e["param"])
		} else {
			require.Equal(t, c.param, e["param"], c.body)
		}
	}
	status, _ := post(t, web, "/v1/nothing", `{}`)
	require.Equal(t, 404, status)
	resp, err := http.Get(web.URL + "/v1/completions")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 405, resp.StatusCode)
	require.Equal(t, "POST", resp.Header.Get("Allow"))
	ask(t, web, "/v1/completions", `{"prompt": "x", "max_tokens": 2, "user": "me", "seed": -5}`)
}

// TestKeys: without a key that the server knows there is the status 401, but /health answers.
func TestKeys(t *testing.T) {
	_, web := server(t, Options{Keys: []string{"sesame", "other"}})
	get := func(path, name, key string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+path, nil)
		require.NoError(t, err)
		if name != "" {
			r.Header.Set(name, key)
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, 401, get("/v1/models", "", ""))
	require.Equal(t, 401, get("/metrics", "", ""))
	require.Equal(t, 401, get("/v1/models", "Authorization", "Bearer wrong"))
	require.Equal(t, 200, get("/v1/models", "Authorization", "Bearer sesame"))
	require.Equal(t, 200, get("/v1/models", "X-Api-Key", "other"))
	require.Equal(t, 200, get("/health", "", ""))
}

// TestBatchInvariance: with Invariant each of many greedy answers is the one that it is alone, to the byte, for prompts
// that share beginnings and those that do not.
func TestBatchInvariance(t *testing.T) {
	_, web := server(t, Options{Invariant: true, Rows: 6, Chunk: 16})
	prompts := make([]string, 14)
	for i := range prompts {
		prompts[i] = strings.Repeat("hello there my good friend ", 1+i%5) + fmt.Sprint(i)
	}
	body := func(i int) object {
		return object{"prompt": prompts[i], "temperature": 0, "max_tokens": 24, "logprobs": 0}
	}
	alone := make([]any, len(prompts))
	for i := range prompts {
		alone[i] = choice(ask(t, web, "/v1/completions", body(i)), 0)
	}
	var wait sync.WaitGroup
	together := make([]any, len(prompts))
	for i := range prompts {
		wait.Add(1)
		go func() {
			defer wait.Done()
			b, _ := json.Marshal(body(i))
			resp, err := http.Post(web.URL+"/v1/completions", "application/json", bytes.NewReader(b))
			if err != nil {
				return
			}
			defer resp.Body.Close()
			var o object
			if json.NewDecoder(resp.Body).Decode(&o) == nil && resp.StatusCode == 200 {
				together[i] = choice(o, 0)
			}
		}()
	}
	wait.Wait()
	for i := range prompts {
		require.Equal(t, alone[i], together[i], "answer %d, with the logarithms of its probabilities", i)
	}
}

// TestHangUps: a client that goes frees its place, and nothing is left of it.
func TestHangUps(t *testing.T) {
	s, web := server(t, Options{Rows: 2, Waiting: 3})
	ask(t, web, "/v1/completions", object{"prompt": "x", "max_tokens": 1})
	before := runtime.NumGoroutine()
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		started := make(chan struct{}, 5)
		for i := range 5 { // two of them run, three wait
			wait.Add(1)
			go func() {
				defer wait.Done()
				body := fmt.Sprintf(`{"prompt": "x", "max_tokens": 1900, "ignore_eos": true, "stream": %v}`, i%2 == 0)
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, web.URL+"/v1/completions",
					strings.NewReader(body))
				started <- struct{}{}
				resp, err := http.DefaultClient.Do(r)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
		}
		for range 5 {
			<-started
		}
		slot := s.models.slots["tiny"]
		require.Eventually(t, func() bool {
			f := slot.loaded.figures.Load()
			return f.running == 2 && f.waiting == 3
		}, time.Minute, time.Millisecond)
		status, out := post(t, web, "/v1/completions", `{"prompt": "x"}`)
		require.Equal(t, 429, status)
		require.Equal(t, "rate_limit_error", out["error"].(object)["type"])
		cancel()
		wait.Wait()
		require.Eventually(t, func() bool { // the server hears of it a moment later
			status, _ := post(t, web, "/v1/completions", object{"prompt": "x", "max_tokens": 2})
			f := slot.loaded.figures.Load()
			return status == 200 && f.running+f.waiting+f.reading == 0
		}, time.Minute, time.Millisecond)
	}
	http.DefaultClient.CloseIdleConnections()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+4 }, time.Minute, 10*time.Millisecond)
}

// TestModelsByName: models are loaded when they are asked for and dropped for others; metrics tell of them.
func TestModelsByName(t *testing.T) {
	dir, err := tiny()
	require.NoError(t, err)
	_, web := server(t, Options{Models: []Model{{Name: "a", Path: dir}, {Name: "b/c", Path: dir}, {Name: "bad",
		Path: dir + "/nothing"}}})
	want := said(t, "hello", 5)
	for _, name := range []string{"a", "b/c", "a"} {
		out := ask(t, web, "/v1/completions", object{"model": name, "prompt": "hello", "temperature": 0, "max_tokens": 5})
		require.Equal(t, want, choice(out, 0)["text"])
	}
	status, out := post(t, web, "/v1/completions", `{"model": "bad", "prompt": "x"}`)
	require.Equal(t, 503, status)
	require.Contains(t, out["error"].(object)["message"], "the model bad cannot be loaded")
	status, out = post(t, web, "/v1/completions", `{"prompt": "x"}`)
	require.Equal(t, 400, status)
	require.Equal(t, "model", out["error"].(object)["param"])
	get := func(path string) (int, string) {
		resp, err := http.Get(web.URL + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	status, text := get("/v1/models")
	require.Equal(t, 200, status)
	require.Contains(t, text, `"id":"b/c"`)
	status, _ = get("/v1/models/b/c")
	require.Equal(t, 200, status)
	status, _ = get("/v1/models/d")
	require.Equal(t, 404, status)
	ask(t, web, "/v1/completions", object{"model": "a", "prompt": "hello", "max_tokens": 5})
	status, text = get("/metrics")
	require.Equal(t, 200, status)
	require.Contains(t, text, `mlxlua_generated_tokens_total{model="a"} 5`)
	require.Contains(t, text, `mlxlua_requests_total{path="/v1/completions",status="503"} 1`)
	require.Contains(t, text, `mlxlua_first_token_seconds_bucket{le="+Inf"} 4`)
}

// TestShutdown: answers under way are given, new requests are refused, and nothing is left.
func TestShutdown(t *testing.T) {
	s, web := server(t, Options{Context: 2000})
	ask(t, web, "/v1/completions", object{"prompt": "x", "max_tokens": 1})
	answered := make(chan int)
	go func() {
		resp, err := http.Post(web.URL+"/v1/completions", "application/json",
			strings.NewReader(`{"prompt": "x", "max_tokens": 1500, "ignore_eos": true}`))
		if err != nil {
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	slot := s.models.slots["tiny"]
	require.Eventually(t, func() bool { return slot.loaded.figures.Load().running == 1 }, time.Minute, time.Millisecond)
	ended := make(chan error)
	go func() { ended <- s.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool { return s.closing.Load() }, time.Minute, time.Millisecond)
	status, out := post(t, web, "/v1/completions", `{"prompt": "x"}`)
	require.Equal(t, 503, status)
	require.Equal(t, "server_error", out["error"].(object)["type"])
	require.Equal(t, 200, <-answered)
	require.NoError(t, <-ended)
}
