// Command lm_embed shows a Go program that has a language model answer: the model scripts are Lua, and their text comes
// to Go piece by piece. With -serve it mounts the server of language models beside a path of its own, until Ctrl-C.
//
//	lm_embed DIRECTORY PROMPT
//	lm_embed -serve ADDRESS DIRECTORY
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/serve"
)

const script = `
local lm = require("lm")
local session
function open(directory) session = lm.open(directory) end
function answer(prompt, options)
  for piece in session:answer(session:tokens(prompt), options) do said(piece) end
  return options.figures.tokens
end
`

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "-serve":
		err = listen(os.Stdout, args[1], args[2])
	case len(args) == 2:
		err = run(os.Stdout, args[0], args[1])
	default:
		err = errors.New("usage: lm_embed DIRECTORY PROMPT, or lm_embed -serve ADDRESS DIRECTORY")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// listen answers OpenAI's clients under /v1/, and others by itself.
func listen(out io.Writer, address, directory string) error {
	models, err := serve.New(serve.Options{Models: []serve.Model{{Name: "mine", Path: directory}}})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", models)
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = web.Shutdown(context.Background()) // it waits for answers under way
	}()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return models.Shutdown(context.Background())
}

func run(out io.Writer, directory, prompt string) error {
	state, err := mlxlua.Open(mlxlua.Options{Libraries: true, Stdout: out})
	if err != nil {
		return err
	}
	defer state.Close()
	ctx := context.Background()
	err = state.Set("said", func(_ context.Context, args []any) ([]any, error) {
		fmt.Fprint(out, args...)
		return nil, nil
	})
	if err != nil {
		return err
	}
	if _, err := state.Run(ctx, "answer", script); err != nil {
		return err
	}
	if _, err := state.Call(ctx, "open", directory); err != nil {
		return err
	}
	figures, err := state.Call(ctx, "answer", prompt, map[string]any{"max_tokens": 20})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%v tokens\n", figures[0])
	return nil
}
