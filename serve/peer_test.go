package serve

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	python  = flag.String("python", "", "TestClients: a Python with the packages openai and anthropic")
	loadFor = flag.Duration("load", 0, "TestLoad: for how long 64 clients ask")
)

// TestClients: the clients of OpenAI and Anthropic understand the server: testdata/clients.py.
//
//	go test ./serve -run Clients -python PYTHON
func TestClients(t *testing.T) {
	if *python == "" {
		t.Skip("it needs -python")
	}
	web := caller(t, "sesame")
	out, err := exec.CommandContext(t.Context(), *python, "testdata/clients.py", web.URL).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "both are content")
}

// TestLoad: 64 clients ask, hang up and send what is wrong; with Invariant each greedy answer has the bytes of the one
// that it is alone, memory stays what it was, and no goroutine is left.
//
//	go test ./serve -run Load -load 10m -timeout 15m
func TestLoad(t *testing.T) {
	if *loadFor == 0 {
		t.Skip("it needs -load")
	}
	_, web := server(t, Options{Invariant: true, Rows: 16, Waiting: 64, Chunk: 32, Prefixes: 8 << 20})
	const texts = 24
	body := func(i int) string {
		return fmt.Sprintf(`{"prompt": %q, "temperature": 0, "max_tokens": %d}`,
			strings.Repeat("hello there my good friend ", 1+i%7)+fmt.Sprint(i), 8+i%40)
	}
	alone := make([]string, texts)
	for i := range alone {
		alone[i] = choice(ask(t, web, "/v1/completions", body(i)), 0)["text"].(string)
	}
	http.DefaultClient.CloseIdleConnections()
	goroutines := runtime.NumGoroutine()
	var counts [4]atomic.Int64 // right answers, hang-ups, refusals, other answers
	var wrong atomic.Value
	measure := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early, late uint64
	end := time.Now().Add(*loadFor)
	var wait sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	for range 64 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for time.Now().Before(end) {
				i := rand.IntN(texts)
				text := body(i)
				kind := rand.IntN(10)
				switch kind {
				case 0:
					text = text + "}"
				case 1:
					text = strings.Replace(text, "{", `{"stream": true, `, 1)
				case 2:
					text = strings.Replace(text, `"temperature": 0`, `"temperature": 1`, 1)
				}
				resp, err := client.Post(web.URL+"/v1/completions", "application/json", strings.NewReader(text))
				if err != nil {
					wrong.Store(err.Error())
					return
				}
				if kind == 1 { // it reads a little and goes
					_, _ = io.ReadFull(resp.Body, make([]byte, 300))
					resp.Body.Close()
					counts[1].Add(1)
					continue
				}
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				var o object
				_ = json.Unmarshal(bytes.TrimSpace(b), &o)
				switch {
				case resp.StatusCode == 400 && kind == 0, resp.StatusCode == 429:
					counts[2].Add(1)
				case resp.StatusCode != 200:
					wrong.Store(fmt.Sprint(resp.StatusCode, string(b)))
				case kind == 2:
					counts[3].Add(1)
				case choice(o, 0)["text"] != alone[i]:
					wrong.Store(fmt.Sprintf("text %d: %q, alone %q", i, choice(o, 0)["text"], alone[i]))
				default:
					counts[0].Add(1)
				}
			}
		}()
	}
	time.Sleep(*loadFor / 3)
	early = measure()
	wait.Wait()
	client.CloseIdleConnections()
	late = measure()
	require.Nil(t, wrong.Load())
	t.Logf("%d right answers, %d hang-ups, %d refusals, %d others; heap %.1f MB a third through, %.1f MB at the end",
		counts[0].Load(), counts[1].Load(), counts[2].Load(), counts[3].Load(), float64(early)/1e6, float64(late)/1e6)
	require.Greater(t, counts[0].Load(), int64(64))
	require.Less(t, float64(late), float64(early)*1.2+16e6)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+4 }, time.Minute, 10*time.Millisecond)
}
