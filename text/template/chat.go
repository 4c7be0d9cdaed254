package template

import (
	"context"
	"slices"
)

// Chat is what a chat template is rendered with. Nothing in it is changed.
type Chat struct {
	Messages  *List // of dicts with "role", "content" and so on
	Tools     *List // nil for none: the template sees None then
	Documents *List // nil for none: the template sees None then
	// AddGenerationPrompt asks for the beginning of the assistant's answer at the end.
	AddGenerationPrompt bool
	// Arguments are further variables: those that the user sets (enable_thinking), and the special tokens of the tokenizer
	// (bos_token, eos_token, pad_token, unk_token). nil for none.
	Arguments *Dict
}

// reasoning are the names that messages have their thoughts under; templates read the first one, some the second one.
var reasoning = []string{"reasoning_content", "thinking", "reasoning"}

// Apply renders a conversation, as transformers' apply_chat_template does: thoughts that a message has under one of the
// usual names can be read as reasoning_content and as thinking.
func (t *Template) Apply(ctx context.Context, chat Chat, o Options) (string, error) {
	vars := NewDict()
	messages := NewList()
	for _, m := range chat.Messages.Items {
		messages.Items = append(messages.Items, withReasoning(m))
	}
	vars.Set("messages", messages)
	for name, list := range map[string]*List{"tools": chat.Tools, "documents": chat.Documents} {
		vars.Set(name, nil)
		if list != nil {
			vars.Set(name, list)
		}
	}
	vars.Set("add_generation_prompt", chat.AddGenerationPrompt)
	if chat.Arguments != nil {
		for _, k := range chat.Arguments.Keys() {
			v, _ := chat.Arguments.Get(k)
			vars.Set(k, v)
		}
	}
	return t.Render(ctx, vars, o)
}

func withReasoning(message any) any {
	m, ok := message.(*Dict)
	if !ok {
		return message
	}
	at := slices.IndexFunc(reasoning, func(key string) bool {
		v, _ := m.Get(key)
		return v != nil
	})
	if at < 0 {
		return message
	}
	thoughts, _ := m.Get(reasoning[at])
	out := NewDict()
	if _, has := m.Get("thinking"); !has {
		out.Set("thinking", thoughts)
	}
	for i, k := range m.keys {
		out.set(k, m.vals[i])
	}
	out.Set("reasoning_content", thoughts)
	return out
}
