package serve

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// metrics count what a server does, for Prometheus.
type metrics struct {
	mu       sync.Mutex
	requests map[string]int // by their labels
	seconds  map[string]*histogram
	first    histogram
}

// bounds are the upper ends of the classes of times, in seconds.
var bounds = []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300}

type histogram struct {
	counts [11]int
	sum    float64
	count  int
}

func (h *histogram) add(d time.Duration) {
	at, _ := slices.BinarySearch(bounds, d.Seconds())
	h.counts[at]++
	h.sum += d.Seconds()
	h.count++
}

func (h *histogram) write(w io.Writer, name, labels string) {
	sum := 0
	comma := strings.TrimSuffix(labels+",", ",")
	if labels != "" {
		comma += ","
	}
	for i, bound := range bounds {
		sum += h.counts[i]
		fmt.Fprintf(w, "%s_bucket{%sle=\"%g\"} %d\n", name, comma, bound, sum)
	}
	fmt.Fprintf(w, "%s_bucket{%sle=\"+Inf\"} %d\n", name, comma, h.count)
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(w, "%s_sum%s %g\n%s_count%s %d\n", name, labels, h.sum, name, labels, h.count)
}

// request counts a request that has been answered.
func (m *metrics) request(path string, status int, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests == nil {
		m.requests, m.seconds = map[string]int{}, map[string]*histogram{}
	}
	m.requests[fmt.Sprintf(`path=%q,status="%d"`, path, status)]++
	label := fmt.Sprintf("path=%q", path)
	if m.seconds[label] == nil {
		m.seconds[label] = &histogram{}
	}
	m.seconds[label].add(d)
}

// answered notes when the first token of an answer came.
func (m *metrics) answered(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first.add(d)
}

// rows are the metrics of each model: name, type, what it is, and the number.
var modelMetrics = []struct {
	name, kind, help string
	value            func(f *figures) float64
}{
	{"running", "gauge", "Texts that are gone on with.", func(f *figures) float64 { return f.running }},
	{"waiting", "gauge", "Requests that wait, or whose prompts are being read.", func(f *figures) float64 {
		return f.waiting + f.reading
	}},
	{"cache_bytes", "gauge", "Memory of keys, values and states of texts.", func(f *figures) float64 { return f.bytes }},
	{"prefix_bytes", "gauge", "Memory of what is kept of earlier texts.", func(f *figures) float64 { return f.prefixes }},
	{"answers_total", "counter", "Answers that have ended.", func(f *figures) float64 { return f.done }},
	{"prompt_tokens_total", "counter", "Tokens of prompts.", func(f *figures) float64 { return f.prompts }},
	{"cached_tokens_total", "counter", "Tokens of prompts that were known.", func(f *figures) float64 { return f.cached }},
	{"generated_tokens_total", "counter", "Tokens of answers.", func(f *figures) float64 { return f.said }},
	{"steps_total", "counter", "Steps of all texts together.", func(f *figures) float64 { return f.steps }},
	{"read_tokens_total", "counter", "Tokens of prompts that were read.", func(f *figures) float64 { return f.read }},
}

// writeMetrics is GET /metrics.
func (s *Server) writeMetrics(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.models.mu.Lock()
	now := map[string]*figures{}
	for name, slot := range s.models.slots {
		if slot.loaded != nil {
			now[name] = slot.loaded.figures.Load()
		}
	}
	s.models.mu.Unlock()
	head := func(name, kind, help string) {
		fmt.Fprintf(w, "# HELP mlxlua_%s %s\n# TYPE mlxlua_%s %s\n", name, help, name, kind)
	}
	head("models_loaded", "gauge", "Models in memory.")
	fmt.Fprintf(w, "mlxlua_models_loaded %d\n", len(now))
	for _, row := range modelMetrics {
		head(row.name, row.kind, row.help)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			fmt.Fprintf(w, "mlxlua_%s{model=%q} %g\n", row.name, name, row.value(now[name]))
		}
	}
	m := &s.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	head("requests_total", "counter", "Requests that were answered, by path and status.")
	for _, labels := range slices.Sorted(maps.Keys(m.requests)) {
		fmt.Fprintf(w, "mlxlua_requests_total{%s} %d\n", labels, m.requests[labels])
	}
	head("request_seconds", "histogram", "Time from a request to the end of its answer.")
	for _, labels := range slices.Sorted(maps.Keys(m.seconds)) {
		m.seconds[labels].write(w, "mlxlua_request_seconds", labels)
	}
	head("first_token_seconds", "histogram", "Time from a request to its first token.")
	m.first.write(w, "mlxlua_first_token_seconds", "")
	return nil
}
