// Command embed shows what Go programs do with mlxlua: one hands arrays and a function to a script and reads its
// result; with -http it serves users' scripts, each in a sandbox of its own under limits (see handler.go).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/mlxlua/mlxlua"
)

func main() {
	address := flag.String("http", "", "serve users' scripts at this address, such as localhost:8080")
	folder := flag.String("scripts", "", "the folder of score.lua, which is watched; by default the one in the program")
	flag.Parse()
	var err error
	if *address == "" {
		err = run(os.Stdout)
	} else {
		err = listen(*address, *folder)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// listen serves users' scripts until the process ends; folder is where score.lua is, "" for the one in the program.
func listen(address, folder string) error {
	files, err := scoreFiles(folder)
	if err != nil {
		return err
	}
	h, err := NewHandler(context.Background(), files, log.Printf)
	if err != nil {
		return err
	}
	defer h.Close()
	server := &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}

// run hands arrays and a function to a script.
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
	if _, err := state.Run(ctx, "score", scoreText); err != nil {
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
