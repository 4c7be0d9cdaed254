package serve

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// mostChoices bounds the answers to one request.
const mostChoices = 128

// completions is POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	f, err := s.body(w, r)
	if err != nil {
		return err
	}
	name, n, stream, usage := f.choices()
	prompts := f.prompts()
	base := request{"max_tokens": 16.0}
	f.drawing(base)
	f.length(base, "max_tokens")
	f.stops(base, 16)
	if f.flag("ignore_eos") {
		base["ignore_end"] = true
	}
	ranked, _ := f.count("logprobs", 0, 20)
	if _, ok := f.raw["logprobs"]; ok {
		base["ranked"] = float64(ranked)
	}
	seed := f.seed()
	echo := f.flag("echo")
	if echo && base["ranked"] != nil {
		f.fail("logprobs", "logprobs of an echo are not supported")
	}
	for _, p := range prompts {
		if _, ok := p.(string); echo && !ok {
			f.fail("echo", "a prompt of tokens is not echoed")
		}
	}
	f.only("suffix", `""`)
	if best, ok := f.count("best_of", 1, mostChoices); ok && best != n {
		f.fail("best_of", "best_of is %d, which is supported only where it is n, %d", best, n)
	}
	f.ignored()
	if len(prompts)*n > mostChoices {
		f.fail("n", "%d prompts with %d answers each are more than %d", len(prompts), n, mostChoices)
	}
	if err := f.done(); err != nil {
		return err
	}
	var list []request
	for i, p := range prompts {
		for k := range n {
			one := request{"prompt": p, "seed": seedOf(seed, i*n+k)}
			for key, v := range base {
				one[key] = v
			}
			list = append(list, one)
		}
	}
	m, release, err := s.models.get(r.Context(), name)
	if err != nil {
		return err
	}
	a, err := s.ask(r.Context(), m, release, list)
	if err != nil {
		return err
	}
	defer a.end()
	c := &completion{s: s, a: a, n: n, id: newID("cmpl-"), model: name, created: time.Now().Unix(), echo: make([]string,
		len(list)), choices: make([]textChoice, len(list))}
	for i := range list {
		if echo {
			c.echo[i] = prompts[i/n].(string)
		}
	}
	if stream {
		return c.stream(w, r, usage)
	}
	return c.whole(w, r)
}

// completion is a request to /v1/completions that is being answered.
type completion struct {
	s       *Server
	a       *answers
	n       int // answers to each prompt
	id      string
	model   string
	created int64
	echo    []string
	choices []textChoice
}

// textChoice is what there is of one answer.
type textChoice struct {
	text   strings.Builder
	probs  textProbs
	offset int
	ranked bool
}

// textProbs is logprobs of /v1/completions.
type textProbs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

// add notes a token.
func (c *textChoice) add(t *token) {
	if t == nil {
		return
	}
	c.ranked = true
	p := &c.probs
	p.Tokens, p.TokenLogprobs = append(p.Tokens, readable(t.bytes)), append(p.TokenLogprobs, t.logprob)
	p.TextOffset = append(p.TextOffset, c.offset)
	c.offset += utf8.RuneCountInString(readable(t.bytes))
	best := map[string]float64{}
	for _, b := range t.best {
		best[readable(b.bytes)] = b.logprob
	}
	p.TopLogprobs = append(p.TopLogprobs, best)
}

// taken is logprobs of what was noted since the last call; nil: there are none.
func (c *textChoice) taken() any {
	if !c.ranked {
		return nil
	}
	p := c.probs
	c.probs = textProbs{}
	if p.Tokens == nil {
		return textProbs{[]string{}, []float64{}, []map[string]float64{}, []int{}}
	}
	return p
}

// readable is the bytes of a token as a text: those that are no character's are written as OpenAI does.
func readable(b string) string {
	if utf8.ValidString(b) {
		return b
	}
	const hex = "0123456789abcdef"
	out := "bytes:"
	for i := range len(b) {
		out += `\x` + string(hex[b[i]>>4]) + string(hex[b[i]&15])
	}
	return out
}

func (c *completion) object(choices []any, usage any) map[string]any {
	o := map[string]any{"id": c.id, "object": "text_completion", "created": c.created, "model": c.model,
		"choices": choices}
	if usage != nil {
		o["usage"] = usage
	}
	return o
}

func (c *completion) prompts() (sum int) {
	for i := 0; i < len(c.a.jobs); i += c.n {
		sum += c.a.jobs[i].prompt
	}
	return sum
}

// whole answers at once.
func (c *completion) whole(w http.ResponseWriter, r *http.Request) error {
	reasons := make([]string, len(c.choices))
	err := c.a.each(r.Context(), func(i int, e event) error {
		c.choices[i].text.WriteString(e.text)
		c.choices[i].add(e.token)
		reasons[i] = e.reason
		return nil
	})
	if err != nil {
		return err
	}
	c.s.metrics.answered(c.a.first)
	list := make([]any, len(c.choices))
	for i := range c.choices {
		list[i] = map[string]any{"index": i, "text": c.echo[i] + c.choices[i].text.String(), "finish_reason": reasons[i],
			"logprobs": c.choices[i].taken()}
	}
	reply(w, http.StatusOK, c.object(list, c.a.usage(c.prompts())))
	return nil
}

// stream answers piece by piece.
func (c *completion) stream(w http.ResponseWriter, r *http.Request, usage bool) error {
	out := newSSE(w)
	err := c.a.each(r.Context(), func(i int, e event) error {
		c.choices[i].add(e.token)
		text := c.echo[i] + e.text
		c.echo[i] = ""
		if text == "" && e.reason == "" && e.token == nil {
			return nil
		}
		var reason any
		if e.reason != "" {
			reason = e.reason
		}
		return out.send("", c.object([]any{map[string]any{"index": i, "text": text, "finish_reason": reason,
			"logprobs": c.choices[i].taken()}}, nil))
	})
	if err == nil {
		c.s.metrics.answered(c.a.first)
		if usage {
			err = out.send("", c.object([]any{}, c.a.usage(c.prompts())))
		}
	}
	out.finish(err)
	return err
}

// choices reads what all requests for text have: the model's name, how many answers are wanted, and whether they come
// piece by piece, with what was used at the end.
func (f *fields) choices() (name string, n int, stream, usage bool) {
	name = f.text("model")
	n, ok := f.count("n", 1, mostChoices)
	if !ok {
		n = 1
	}
	stream = f.flag("stream")
	var options map[string]json.RawMessage
	if f.value("stream_options", "an object", &options) {
		if !stream {
			f.fail("stream_options", "stream_options is only allowed where stream is true")
		}
		for key, v := range options {
			switch key {
			case "include_usage":
				if json.Unmarshal(v, &usage) != nil {
					f.fail("stream_options", "include_usage is %s, want true or false", short(v))
				}
			case "include_obfuscation": // of the lengths of pieces: there is none
				if string(v) != "false" {
					f.fail("stream_options", "include_obfuscation is not supported")
				}
			default:
				f.fail("stream_options", "Unrecognized request argument supplied: stream_options.%s", key)
			}
		}
	}
	return name, n, stream, usage
}

// length reads the most tokens of an answer.
func (f *fields) length(r request, names ...string) {
	for _, name := range names {
		if n, ok := f.count(name, 1, 1<<31); ok {
			r["max_tokens"] = float64(n)
		}
	}
}

// stops reads texts that end an answer.
func (f *fields) stops(r request, most int) {
	list := f.texts("stop", most)
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	r["stop"] = out
}

// ignored takes fields that say something of the request, and nothing of the answer.
func (f *fields) ignored() {
	for _, name := range []string{"user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"} {
		f.only(name)
	}
	f.only("store", "false")
	f.only("service_tier", `"auto"`, `"default"`)
}

// prompts reads the prompts of /v1/completions: a text, tokens, or a list of either.
func (f *fields) prompts() []any {
	raw, ok := f.take("prompt")
	if !ok {
		f.fail("prompt", "you must provide a prompt")
		return nil
	}
	var text string
	var texts []string
	var ids []float64
	var lists [][]float64
	list := func(ids []float64) any {
		out := make([]any, len(ids))
		for i, id := range ids {
			out[i] = id
		}
		return out
	}
	var out []any
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return []any{text}
	case json.Unmarshal(raw, &texts) == nil && len(texts) > 0:
		for _, t := range texts {
			out = append(out, t)
		}
	case json.Unmarshal(raw, &ids) == nil && len(ids) > 0:
		return []any{list(ids)}
	case json.Unmarshal(raw, &lists) == nil && len(lists) > 0:
		for _, l := range lists {
			out = append(out, list(l))
		}
	default:
		f.fail("prompt", "prompt is %s, want a text, a list of tokens, or a list of either", short(raw))
	}
	return out
}
