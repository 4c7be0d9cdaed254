package serve

import (
	"strings"

	"github.com/mlxlua/mlxlua/text/says"
)

// spoken is what there is of one answer of a conversation.
type spoken struct {
	form    says.Form
	tools   bool
	single  bool
	reader  *says.Reader
	content strings.Builder
	thought strings.Builder
	calls   []says.Call
	reason  string
	stop    string
	over    bool
}

// take takes an event apart.
func (s *spoken) take(j *job, e event) []says.Part {
	if s.reader == nil {
		s.reader = says.NewReader(s.form, s.tools, j.opening)
	}
	parts := s.reader.Push(e.text)
	if e.reason != "" {
		parts = append(parts, s.reader.Finish()...)
		s.reason, s.stop, s.over = e.reason, e.stop, true
	}
	for i, p := range parts {
		s.content.WriteString(p.Content)
		s.thought.WriteString(p.Thought)
		if p.Call != nil {
			s.calls = append(s.calls, *p.Call)
			if s.single {
				parts, s.over = parts[:i+1], true
				break
			}
		}
	}
	if len(s.calls) > 0 && (s.reason == "stop" || s.single) {
		s.reason = "tool_calls"
	}
	return parts
}
