package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mlxlua/mlxlua/serve"
)

// grace is how long answers may go on after Ctrl-C; a second one ends them.
const grace = 30 * time.Second

// serve is serve(options) of lm_host: it answers requests until Ctrl-C, and gives nil, or why it could not.
func (p *program) serve(ctx context.Context, args []any) ([]any, error) {
	o := serverOptions(args[0].(map[string]any))
	opt := o.server()
	opt.Errors = func(err error) { fmt.Fprintf(p.stderr, "mlxlua lm server: %v\n", err) }
	if err := p.listen(ctx, o, opt); err != nil {
		return []any{err.Error()}, nil
	}
	return nil, nil
}

// listen serves until Ctrl-C.
func (p *program) listen(ctx context.Context, o serverOptions, opt serve.Options) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	s, err := serve.New(opt)
	if err != nil {
		return err
	}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	if lazy, _ := o["lazy"].(bool); !lazy {
		for i, m := range opt.Models {
			if i >= max(opt.Loaded, 1) {
				break
			}
			if err := s.Load(loading, m.Name); err != nil {
				return err
			}
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.text("host"), strconv.Itoa(o.count("port"))))
	if err != nil {
		return err
	}
	web := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	scheme, ended := "http", make(chan error, 1)
	if cert := o.text("tls_cert"); cert != "" {
		scheme = "https"
		go func() { ended <- web.ServeTLS(listener, cert, o.text("tls_key")) }()
	} else {
		go func() { ended <- web.Serve(listener) }()
	}
	fmt.Fprintf(p.stderr, "serving %s at %s://%s\n", modelNames(opt.Models), scheme, listener.Addr())
	select {
	case err := <-ended:
		return err
	case <-signals:
	case <-ctx.Done():
	}
	fmt.Fprintf(p.stderr, "ending: answers under way have %v; Ctrl-C ends them\n", grace)
	ending, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ending.Done():
		}
	}()
	err = s.Shutdown(ending)
	if err2 := web.Shutdown(ending); err == nil {
		err = err2
	}
	_ = web.Close()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("some answers were ended: %w", err)
	}
	return nil
}

func modelNames(models []serve.Model) string {
	list := make([]string, len(models))
	for i, m := range models {
		list[i] = m.Name
	}
	return strings.Join(list, ", ")
}

// serverOptions are the options of the command, as scripts/lm/server.lua names them.
type serverOptions map[string]any

func (o serverOptions) number(name string) float64 { v, _ := o[name].(float64); return v }

func (o serverOptions) count(name string) int { return int(o.number(name)) }

func (o serverOptions) text(name string) string { v, _ := o[name].(string); return v }

func (o serverOptions) texts(name string) (out []string) {
	list, _ := o[name].([]any)
	for _, v := range list {
		out = append(out, v.(string))
	}
	return out
}

// server are the options of a server.
func (o serverOptions) server() serve.Options {
	opt := serve.Options{
		Loaded: o.count("loaded"), Idle: time.Duration(o.number("idle") * float64(time.Second)), Keys: o.texts("api_key"),
		Rows: o.count("rows"), Waiting: o.count("waiting"), Chunk: o.count("prefill_step_size"),
		Context: o.count("context"), MaxTokens: o.count("max_tokens"), Cache: int64(o.number("cache_memory") * 1e9),
		Prefixes: int64(o.number("prompt_cache_memory") * 1e9), KVBits: o.count("kv_bits"),
		KVGroup: o.count("kv_group_size"), Ignore: o.texts("ignore_key"),
	}
	opt.Invariant, _ = o["batch_invariant"].(bool)
	if opt.Prefixes == 0 {
		opt.Prefixes = -1
	}
	for _, text := range o.texts("model") {
		name, path, named := strings.Cut(text, "=")
		if !named {
			name, path = strings.TrimSuffix(filepath.Base(text), ".gguf"), text
			if _, err := os.Stat(text); err != nil { // a repository
				name = text
			}
		}
		opt.Models = append(opt.Models, serve.Model{Name: name, Path: path, Tokenizer: o.text("tokenizer")})
	}
	return opt
}
