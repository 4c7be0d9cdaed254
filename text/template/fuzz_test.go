package template

import (
	"context"
	"errors"
	"testing"
	"time"
)

// FuzzTemplate: whatever a template says, it ends, and an error has a place.
func FuzzTemplate(f *testing.F) {
	vars, cases := readGolden(f)
	for _, c := range cases {
		f.Add(c.source)
	}
	limits := Limits{Output: 1 << 20, Memory: 8 << 20, Steps: 200_000, Depth: 50}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse(source)
		if err == nil {
			start := time.Now()
			for _, name := range []string{"data", "tools"} {
				_, err = tmpl.Render(context.Background(), vars[name], Options{Limits: limits, Now: clockStands})
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("takes %v", d)
			}
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
			t.Errorf("%v has no place", err)
		}
	})
}

// FuzzJSON: no document makes ParseJSON panic, and what it reads can be written again.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,true,{"b":{}}],"c":-1e5}`))
	tmpl, err := Parse("{{ v | tojson }}{{ v }}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := ParseJSON(raw)
		if err != nil {
			return
		}
		vars := NewDict()
		vars.Set("v", v)
		if _, err := tmpl.Render(context.Background(), vars, Options{}); err != nil {
			t.Error(err)
		}
	})
}
