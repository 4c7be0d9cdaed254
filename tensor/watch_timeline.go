package tensor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Timeline records when calls were built, walked, planned, encoded, compiled, run and waited for, on every stream, in
// the format that Chrome's about:tracing and Perfetto show. There is one at a time; it sees all goroutines of the
// process.
type Timeline struct {
	start time.Time

	mu      sync.Mutex
	events  []event
	tracks  map[string]int // numbers by name
	dropped int
	over    bool
}

// event is a span, as the format has it. Times are in microseconds.
type event struct {
	Name  string            `json:"name"`
	Cat   string            `json:"cat,omitempty"`
	Phase string            `json:"ph"`
	TS    float64           `json:"ts"`
	Dur   float64           `json:"dur,omitempty"`
	PID   int               `json:"pid"`
	TID   int               `json:"tid"`
	Args  map[string]string `json:"args,omitempty"`
}

// maxEvents bounds a timeline: later spans are counted only.
const maxEvents = 1 << 20

var timeline atomic.Pointer[Timeline]

// StartTimeline begins to record. It is an error if another Timeline is being recorded.
func StartTimeline() (*Timeline, error) {
	t := &Timeline{start: time.Now(), tracks: map[string]int{}}
	if !timeline.CompareAndSwap(nil, t) {
		return nil, errors.New("[timeline] another timeline is being recorded")
	}
	return t, nil
}

// Stop ends the recording. Spans that have not ended are left out.
func (t *Timeline) Stop() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	timeline.CompareAndSwap(t, nil)
}

// Span is a span of a Timeline that has not ended; the zero Span is none.
type Span struct {
	t     *Timeline
	track string
	cat   string
	name  string
	start time.Time
}

// BeginSpan begins a span of the running goroutine on the Timeline that is being recorded, if there is one.
func BeginSpan(category, name string) Span {
	t := timeline.Load()
	if t == nil {
		return Span{}
	}
	return t.begin(goroutineTrack(), category, name)
}

func (t *Timeline) begin(track, category, name string) Span {
	return Span{t, track, category, name, time.Now()}
}

// End ends the span. Where says which line of a program it is about, if it is about one.
func (s Span) End(where Place) {
	if s.t != nil {
		s.t.add(s.track, s.cat, s.name, s.start, time.Now(), where.String(), "")
	}
}

// goroutineTrack names the track of the running goroutine.
func goroutineTrack() string {
	var b [64]byte
	text := b[:runtime.Stack(b[:], false)]
	if end := bytes.IndexByte(text, '['); end > 0 {
		text = bytes.TrimSpace(text[:end])
	}
	return string(text)
}

// add records a span that has ended.
func (t *Timeline) add(track, category, name string, start, end time.Time, line, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || start.Before(t.start) {
		return
	}
	if len(t.events) >= maxEvents {
		t.dropped++
		return
	}
	id, ok := t.tracks[track]
	if !ok {
		id = len(t.tracks) + 1
		t.tracks[track] = id
	}
	e := event{Name: name, Cat: category, Phase: "X", TS: micros(start.Sub(t.start)), Dur: micros(end.Sub(start)), PID: 1,
		TID: id}
	if line != "" || detail != "" {
		e.Args = map[string]string{}
		if line != "" {
			e.Args["line"] = line
		}
		if detail != "" {
			e.Args["detail"] = detail
		}
	}
	t.events = append(t.events, e)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// Write writes what was recorded, as JSON.
func (t *Timeline) Write(w io.Writer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.tracks))
	for name := range t.tracks {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return t.tracks[a] - t.tracks[b] })
	events := make([]event, 0, len(names)+len(t.events)+1)
	for _, name := range names {
		events = append(events, event{Name: "thread_name", Phase: "M", PID: 1, TID: t.tracks[name],
			Args: map[string]string{"name": name}})
	}
	if t.dropped > 0 {
		events = append(events, event{Name: "dropped", Phase: "M", PID: 1, Args: map[string]string{
			"spans": strconv.Itoa(t.dropped)}})
	}
	events = append(events, t.events...)
	return json.NewEncoder(w).Encode(map[string]any{"displayTimeUnit": "ms", "traceEvents": events})
}

// Save writes what was recorded to a file, which is there as a whole or not at all.
func (t *Timeline) Save(path string) (err error) {
	if d, statErr := os.Stat(path); path == "" || statErr == nil && d.IsDir() {
		return fmt.Errorf("[timeline] %q is no name of a file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("[timeline] %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("[timeline] %w", err)
		}
	}()
	b := bufio.NewWriter(f)
	if err = t.Write(b); err != nil {
		return err
	}
	if err = b.Flush(); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// span begins a span of the stream's planning and encoding.
func (s *Stream) span(category, name string) Span {
	t := timeline.Load()
	if t == nil {
		return Span{}
	}
	return t.begin(s.String()+" planning", category, name)
}

// addRun records the run of a batch's command buffer, on the timeline and in the profile.
func (s *Stream) addRun(b *batch) {
	if p := profile.Load(); p != nil && b.cb != nil {
		p.addBatch(b)
	}
	t := timeline.Load()
	if t == nil || b.cb == nil {
		return
	}
	when := b.cb.Timing()
	t.add(s.String()+" device", "run", fmt.Sprintf("command buffer %v", b.cb), when.Start, when.End, "",
		fmt.Sprintf("%d commands, %d calls", b.commands, len(b.nodes)))
}
