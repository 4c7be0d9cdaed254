// Command lm_embed shows a Go program that has a language model answer: the model scripts are Lua, and their text comes
// to Go piece by piece.
//
//	lm_embed DIRECTORY PROMPT
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/mlxlua/mlxlua"
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
	if len(os.Args) != 3 {
		log.Fatal("usage: lm_embed DIRECTORY PROMPT")
	}
	if err := run(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
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
