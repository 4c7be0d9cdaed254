package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// caller is a server of the tiny model with a chat template of tools, as Hermes writes them.
func caller(t *testing.T, keys ...string) *httptest.Server {
	t.Helper()
	from, err := tiny()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "caller")
	require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"),
		[]byte(`{% if tools %}<tools>{% for t in tools %}`+
			`{{ t | tojson }}{% endfor %}</tools> call: <tool_call>{% endif %}`+template), 0o644))
	// the token that ends an answer is the quotation mark in the tiny model
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	config = regexp.MustCompile(`"eos_token_id": ?1\b`).ReplaceAll(config, []byte(`"eos_token_id": 568`))
	require.Contains(t, string(config), "568")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644))
	_, web := server(t, Options{Models: []Model{{Name: "caller", Path: dir}}, Keys: keys})
	return web
}

const schema = `{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 40},
	"color": {"enum": ["red", "green"]}, "ok": {"type": "boolean"}}, "required": ["n", "color"],
		"additionalProperties": false}`

// checkArguments fails for what the schema does not take.
func checkArguments(t *testing.T, text string) {
	t.Helper()
	var v struct {
		N     *int
		Color string
		OK    bool
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&v), text)
	require.NotNil(t, v.N, text)
	require.True(t, *v.N >= 1 && *v.N <= 40, text)
	require.Contains(t, []string{"red", "green"}, v.Color)
}

// TestSchemas: a random model's answers are JSON of a schema, or are cut and say so.
func TestSchemas(t *testing.T) {
	web := caller(t)
	messages := []object{{"role": "user", "content": "hello"}}
	format := object{"type": "json_schema", "json_schema": object{"name": "x", "schema": json.RawMessage(schema),
		"strict": true}}
	out := ask(t, web, "/v1/chat/completions", object{"messages": messages, "response_format": format, "n": 12, "seed": 1,
		"max_tokens": 200})
	ended := 0
	for i := range 12 {
		c := choice(out, i)
		if c["finish_reason"] == "stop" {
			ended++
			checkArguments(t, c["message"].(object)["content"].(string))
		} else {
			require.Equal(t, "length", c["finish_reason"])
		}
	}
	require.Greater(t, ended, 6)
	out = ask(t, web, "/v1/chat/completions", object{"messages": messages, "response_format": format, "max_tokens": 2,
		"temperature": 0})
	require.Equal(t, "length", choice(out, 0)["finish_reason"])
	out = ask(t, web, "/v1/chat/completions", object{"messages": messages, "max_tokens": 60, "n": 4,
		"response_format": object{"type": "json_object"}})
	for i := range 4 {
		text := choice(out, i)["message"].(object)["content"].(string)
		require.True(t, strings.HasPrefix(text, "{"), text)
		if choice(out, i)["finish_reason"] == "stop" {
			require.True(t, json.Valid([]byte(text)), text)
		}
	}
	bad := strings.Replace(schema, `"minimum": 1`, `"multipleOf": 3`, 1)
	format["json_schema"].(object)["schema"] = json.RawMessage(bad)
	status, out := post(t, web, "/v1/chat/completions", object{"messages": messages, "response_format": format})
	require.Equal(t, 400, status)
	require.Contains(t, out["error"].(object)["message"], `"multipleOf"`)
	require.Equal(t, "response_format", out["error"].(object)["param"])
}

// TestTools: a call that a random model has to make is one of the tools, with arguments of its schema, at once and
// streamed, in OpenAI's form and in Anthropic's; and a conversation with calls and results goes through the template.
func TestTools(t *testing.T) {
	web := caller(t)
	tools := []object{{"type": "function", "function": object{"name": "paint", "parameters": json.RawMessage(schema)}},
		{"type": "function", "function": object{"name": "now"}}}
	messages := []object{{"role": "user", "content": "hello"}}
	body := func() object {
		return object{"messages": messages, "tools": tools, "max_tokens": 200, "seed": 3,
			"tool_choice": object{"type": "function", "function": object{"name": "paint"}}}
	}
	out := ask(t, web, "/v1/chat/completions", body())
	require.Equal(t, "tool_calls", choice(out, 0)["finish_reason"], out)
	message := choice(out, 0)["message"].(object)
	require.Nil(t, message["content"])
	call := message["tool_calls"].([]any)[0].(object)
	require.Equal(t, "function", call["type"])
	function := call["function"].(object)
	require.Equal(t, "paint", function["name"])
	checkArguments(t, function["arguments"].(string))

	arguments, reason := "", any(nil)
	for _, v := range events(t, web, "/v1/chat/completions", body()) {
		delta := choice(v, 0)["delta"].(object)
		if list, ok := delta["tool_calls"].([]any); ok {
			require.EqualValues(t, 0, list[0].(object)["index"])
			arguments += list[0].(object)["function"].(object)["arguments"].(string)
		}
		if r := choice(v, 0)["finish_reason"]; r != nil {
			reason = r
		}
	}
	require.Equal(t, function["arguments"], arguments)
	require.Equal(t, "tool_calls", reason)

	required := body()
	required["tool_choice"], required["n"] = "required", 4
	out = ask(t, web, "/v1/chat/completions", required)
	for i := range 4 {
		if choice(out, i)["finish_reason"] == "tool_calls" {
			f := choice(out, i)["message"].(object)["tool_calls"].([]any)[0].(object)["function"].(object)
			require.Contains(t, []string{"paint", "now"}, f["name"])
		}
	}

	// what has been called goes on
	history := append(messages, object{"role": "assistant", "content": nil, "tool_calls": []any{call}},
		object{"role": "tool",
			"tool_call_id": call["id"], "content": "done"})
	ask(t, web, "/v1/chat/completions", object{"messages": history, "tools": tools, "max_tokens": 4})

	for text, more := range map[string]object{
		"none of the tools":  {"tool_choice": object{"type": "function", "function": object{"name": "fly"}}},
		"want none, auto":    {"tool_choice": "always"},
		"want function":      {"tools": []object{{"type": "retrieval"}}},
		"where there are to": {"tools": []object{}, "tool_choice": "required"},
	} {
		b := body()
		for k, v := range more {
			b[k] = v
		}
		status, out := post(t, web, "/v1/chat/completions", b)
		require.Equal(t, 400, status)
		require.Contains(t, out["error"].(object)["message"], text)
	}

	mine := object{"messages": messages, "max_tokens": 200, "tools": []object{{"name": "paint",
		"input_schema": json.RawMessage(schema)}}, "tool_choice": object{"type": "any"}}
	out = ask(t, web, "/v1/messages", mine)
	require.Equal(t, "tool_use", out["stop_reason"], out)
	block := out["content"].([]any)[0].(object)
	require.Equal(t, "paint", block["name"])
	input, err := json.Marshal(block["input"])
	require.NoError(t, err)
	checkArguments(t, string(input))
	history = append(messages, object{"role": "assistant", "content": []any{block}}, object{"role": "user",
		"content": []object{
			{"type": "tool_result", "tool_use_id": block["id"], "content": "done"}, {"type": "text", "text": "thanks"}}})
	ask(t, web, "/v1/messages", object{"messages": history, "max_tokens": 3})
}

// TestMessages: Anthropic's form, at once and as events.
func TestMessages(t *testing.T) {
	_, web := server(t, Options{})
	want := said(t, "<system>be brief<user>hello there<assistant>", 8, true)
	body := object{"model": "tiny", "max_tokens": 8, "temperature": 0, "system": "be brief",
		"messages": []object{{"role": "user", "content": []object{{"type": "text", "text": "hello there"}}}}}
	out := ask(t, web, "/v1/messages", body)
	require.Equal(t, []any{object{"type": "text", "text": want}}, out["content"])
	require.Equal(t, "max_tokens", out["stop_reason"])
	usage := out["usage"].(object)
	require.EqualValues(t, 8, usage["output_tokens"])

	body["stream"] = true
	b, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := http.Post(web.URL+"/v1/messages", "application/json", bytes.NewReader(b))
	require.NoError(t, err)
	defer resp.Body.Close()
	var names []string
	text := ""
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var v object
			require.NoError(t, json.Unmarshal([]byte(data), &v))
			require.Equal(t, names[len(names)-1], v["type"])
			if d, ok := v["delta"].(object); ok && d["type"] == "text_delta" {
				text += d["text"].(string)
			}
		}
	}
	require.Equal(t, want, text)
	require.Equal(t, []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop",
		"message_delta", "message_stop"}, names)

	delete(body, "stream")
	body["stop_sequences"], body["max_tokens"] = []string{want[2:4]}, 50
	out = ask(t, web, "/v1/messages", body)
	require.Equal(t, "stop_sequence", out["stop_reason"])
	require.Equal(t, want[2:4], out["stop_sequence"])
	for text, more := range map[string]string{"Field required": `{"messages": []}`, "nope": `{"max_tokens": 3, "nope": 1,
		"messages": [{"role": "user", "content": "x"}]}`, "no pictures": `{"max_tokens": 3, "messages": [{"role": "user",
		"content": [{"type": "image"}]}]}`} {
		status, out := post(t, web, "/v1/messages", more)
		require.Equal(t, 400, status)
		require.Equal(t, "error", out["type"])
		require.Equal(t, "invalid_request_error", out["error"].(object)["type"])
		require.Contains(t, out["error"].(object)["message"], text)
	}
}
