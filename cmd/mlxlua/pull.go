package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/mlxlua/mlxlua/hub"
	"github.com/mlxlua/mlxlua/hub/fetch"
	"github.com/mlxlua/mlxlua/luabind"
)

// pull is pull(request, progress, note) of lm_host: it downloads a model into the cache and gives its path, or nil,
// why, and whether Ctrl-C has ended it.
func pull(ctx context.Context, args []any) ([]any, error) {
	asked := args[0].(map[string]any)
	text := func(name string) string {
		s, _ := asked[name].(string)
		return s
	}
	signaled, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	ctx, cancel := context.WithCancelCause(signaled)
	defer cancel(nil)
	told := func(f any, args ...any) {
		if _, err := f.(luabind.Func)(ctx, args); err != nil {
			cancel(err)
		}
	}
	path, err := pulled(ctx, fetch.Request{
		Name: text("name"), Revision: text("revision"), GGUF: text("gguf"),
		Progress: func(done, all int64) { told(args[1], float64(done), float64(all)) },
		Note:     func(text string) { told(args[2], text) },
	})
	switch {
	case err != nil && signaled.Err() != nil:
		return []any{nil, "interrupted: what has come is kept, and the same command goes on from there", true}, nil
	case err != nil:
		return []any{nil, err.Error()}, nil
	}
	return []any{path}, nil
}

// pulled is a pull from the hub and to the cache that the environment names.
func pulled(ctx context.Context, r fetch.Request) (string, error) {
	var err error
	if r.Hub, err = fetch.DefaultHub(); err != nil {
		return "", err
	}
	if r.Cache, err = hub.DefaultCache(); err != nil {
		return "", err
	}
	return fetch.Pull(ctx, r)
}
