package says

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// told is all that a reader makes of a text, which comes in pieces of n bytes.
func told(form Form, tools bool, prompt, text string, n int) (content, thought string, calls []Call) {
	r := NewReader(form, tools, prompt)
	var parts []Part
	for text != "" {
		k := min(n, len(text))
		parts = append(parts, r.Push(text[:k])...)
		text = text[k:]
	}
	for _, p := range append(parts, r.Finish()...) {
		content += p.Content
		thought += p.Thought
		if p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return content, thought, calls
}

// TestForms: what models of each family write, by the documents and chat templates of those families, comes apart in
// the same way whatever the pieces are.
func TestForms(t *testing.T) {
	weather := []Call{{"get_weather", `{"city":"Paris"}`}}
	two := append(weather[:1:1], Call{"now", `{}`})
	for _, c := range []struct {
		name, template, prompt, text string
		content, thought             string
		calls                        []Call
	}{
		{"plain", "", "", "hello <there>", "hello <there>", "", nil},
		{"hermes", "<tool_call> tools", "", "I look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": " +
			"\"Paris\"}}" +
			"\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", "I look.", "", two},
		{"hermes, broken", "<tool_call> tools", "", "x <tool_call>{\"name\": 3</tool_call> y",
			"x<tool_call>{\"name\": 3</tool_call> y",
			"", nil},
		{"hermes, cut", "<tool_call> tools", "", "<tool_call>{\"name\": \"get", "<tool_call>{\"name\": \"get", "", nil},
		{"qwen3", "<think> <tool_call>", "", "<think>\nhm, 1 < 2\n</think>\n\nYes.", "Yes.", "hm, 1 < 2", nil},
		{"opened", "<think>", "<assistant><think>\n", "well\n</think>\n\nYes.", "Yes.", "well", nil},
		{"thought, cut", "<think>", "<think>\n", "well </thi", "", "well </thi", nil},
		{"coder", "<tool_call> " +
			"<function=", "", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n" +
			"</function>\n</tool_call>", "", "", weather},
		{"llama", "<|python_tag|> tools", "", "<|python_tag|>{\"name\": \"get_weather\", \"parameters\": {\"city\": " +
			"\"Paris\"}}", "", "",
			weather},
		{"llama, bare", "<|python_tag|> tools", "", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}", "",
			"", weather},
		{"llama, JSON that is no call", "<|python_tag|> tools", "", "{\"a\": 1}", "{\"a\": 1}", "", nil},
		{"mistral", "[TOOL_CALLS]", "", "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, " +
			"{\"name\": \"now\", \"arguments\": {}}]", "", "", two},
		{"mistral, names", "[TOOL_CALLS] [ARGS]", "", "[TOOL_CALLS]get_weather[ARGS]{\"city\": " +
			"\"Paris\"}[TOOL_CALLS]now[ARGS]{}", "", "",
			two},
		{"glm", "<think> <tool_call> <arg_key>", "", "<think>a</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n" +
			"<arg_value>Paris</arg_value>\n</tool_call>", "", "a", weather},
		{"deepseek " +
			"v3", "<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n" +
			"```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", "", weather},
		{"deepseek v3.1", "<｜tool▁calls▁begin｜>", "", "Ok.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>" +
			"{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "Ok.", "", weather},
		{"kimi", "<|tool_calls_section_begin|>", "",
			"<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0" +
				"<|tool_call_argument_begin|>{\"city\": \"Paris\"}<|tool_call_end|><|tool_calls_section_end|>", "", "", weather},
		{"minimax", "<minimax:tool_call>", "", "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter " +
			"name=\"city\">Paris" +
			"</parameter>\n</invoke>\n</minimax:tool_call>", "", "", weather},
		{"lfm2", "<|tool_call_start|>", "", "<|tool_call_start|>[get_weather(city=\"Paris\"), now()]<|tool_call_end|>", "",
			"", two},
		{"gpt-oss", "<|channel|> " +
			"<|message|>", "", "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>commentary " +
			"to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Paris\"}<|call|>", "", "think", weather},
		{"gpt-oss, an answer", "<|channel|> <|message|>", "", "<|channel|>analysis<|message|>think<|end|><|start|>assistant" +
			"<|channel|>final<|message|>Yes < no.", "Yes < no.", "think", nil},
	} {
		for _, n := range []int{1, 3, 7, 1000} {
			content, thought, calls := told(FormOf(c.template), true, c.prompt, c.text, n)
			require.Equal(t, c.content, content, "%s by %d", c.name, n)
			require.Equal(t, c.thought, thought, "%s by %d", c.name, n)
			require.Equal(t, c.calls, calls, "%s by %d", c.name, n)
		}
	}
	content, _, calls := told(FormOf("<tool_call>"), false, "", "<tool_call>{}</tool_call>", 5)
	require.Empty(t, calls)
	require.Equal(t, "<tool_call>{}</tool_call>", content, "without tools there are no calls")
}

// TestPython: literals of Python's as JSON.
func TestPython(t *testing.T) {
	calls, ok := readPythonic(`[f(a='it\'s', b=[1, -2.5, True, None], c={"k": (1, 'x\n')}, d=False)]`)
	require.True(t, ok)
	require.JSONEq(t, `{"a": "it's", "b": [1, -2.5, true, null], "c": {"k": [1, "x\n"]}, "d": false}`, calls[0].Arguments)
	for _, bad := range []string{"", "[", "[f]", "[f(]", "[f(a=)]", "[f(a=x)]", "[f(a=[1)]", "[f(a={1: 2})]", "[]",
		"[f()] x"} {
		_, ok := readPythonic(bad)
		require.False(t, ok, bad)
	}
}
