// Command embed shows a Go program that hands arrays and a function to a script and reads its result.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/mlxlua/mlxlua"
)

const script = `
local mx = require("mx")
function score(x, w)
  local y = mx.softmax(mx.matmul(x, w), -1)
  report("scored " .. #x .. " rows")
  return y
end
`

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	state, err := mlxlua.Open(mlxlua.Options{Stdout: out})
	if err != nil {
		return err
	}
	defer state.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // stops scripts and kernels alike
	defer cancel()

	err = state.Set("report", func(_ context.Context, args []any) ([]any, error) {
		fmt.Fprintln(out, args...)
		return nil, nil
	})
	if err != nil {
		return err
	}
	if _, err := state.Run(ctx, "score", script); err != nil {
		return err
	}
	x := mlxlua.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	w := mlxlua.FromSlice([]float32{1, 0, 0, 1, 1, -1}, 3, 2)
	results, err := state.Call(ctx, "score", x, w)
	if err != nil {
		return err
	}
	y := results[0].(*mlxlua.Array)
	v, err := mlxlua.ToSlice[float32](ctx, y)
	if err != nil {
		return err
	}
	for row := range 2 {
		fmt.Fprintf(out, "%8.4f%8.4f\n", v[2*row], v[2*row+1])
	}
	return nil
}
