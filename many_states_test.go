package mlxlua_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
)

var crowdTime = flag.Duration("crowd", time.Second, "how long TestManyStates keeps its states at work")

// TestManyStates: 100 states at once under limits, some of which want too much: the others' results are right.
func TestManyStates(t *testing.T) {
	serial.Because(t, "its states crowd the machine")
	const users = 100
	end := time.Now().Add(*crowdTime)
	var all sync.WaitGroup
	var good, ended atomic.Int64
	for user := range users {
		all.Go(func() {
			for round := 0; round == 0 || time.Now().Before(end); round++ {
				seed := uint64(user + users*round)
				s, err := mlxlua.Open(mlxlua.Options{Sandbox: true, MemoryLimit: 8 << 20, ArrayLimit: 8 << 20, Seed: seed,
					TimeLimit: time.Minute, KernelTimeLimit: 30 * time.Second, InstructionLimit: 1e6, Stdout: io.Discard})
				if err != nil {
					t.Error(err)
					return
				}
				if user%5 == 0 {
					short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
					_, err = s.Run(short, "attack", randomAttack(seed))
					if err == nil || strings.Contains(err.Error(), "BUG") {
						t.Errorf("seed %d: %v", seed, err)
					}
					ended.Add(1)
					cancel()
				} else {
					out, err := s.Run(context.Background(), "user", `
						local n = 200 + mx.random.randint(0, 100, {}):item()
						local x = mx.arange(0, n, 1, mx.float32)
						for i = 1, 5 do x = x + 1 mx.async_eval(x) end
						local f = mx.compile(function(y) return (y * y):sum() end)
						return n, x:sum():item(), f(mx.ones({n})):item(), mx.grad(f)(mx.ones({n})):sum():item()`)
					if err != nil && !errors.Is(err, mlxlua.ErrLimit) {
						t.Error(err)
					} else if err == nil {
						n := out[0].(float64)
						if out[1] != n*(n-1)/2+5*n || out[2] != n || out[3] != 2*n {
							t.Errorf("wrong results: %v", out)
						}
						good.Add(1)
					}
				}
				s.Close()
			}
		})
	}
	all.Wait()
	if good.Load() < users/2 {
		t.Errorf("only %d scripts came to their end", good.Load())
	}
	t.Logf("%d scripts were right, %d attacks ended", good.Load(), ended.Load())
}
