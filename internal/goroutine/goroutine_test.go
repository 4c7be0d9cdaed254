package goroutine

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestID: goroutines that live at a time have different numbers, by either way of telling, and each keeps its own, also
// on another thread and where its stack has moved.
func TestID(t *testing.T) {
	for name, id := range map[string]func() uintptr{"ID": ID, "number": number} {
		const n = 200
		var seen sync.Map
		var all, told sync.WaitGroup
		told.Add(n)
		for range n {
			all.Go(func() {
				mine := id()
				if _, twice := seen.LoadOrStore(mine, true); twice {
					t.Errorf("%s: two goroutines are %d", name, mine)
				}
				told.Done()
				told.Wait()
				for range 20 {
					runtime.Gosched()
					if deep(50, id) != mine {
						t.Errorf("%s: a goroutine has changed", name)
					}
				}
			})
		}
		all.Wait()
		require.NotZero(t, id())
	}
}

// deep is id under so many calls.
func deep(n int, id func() uintptr) uintptr {
	var room [256]byte
	if n == 0 {
		return id()
	}
	return deep(n-1, id) + uintptr(room[n])
}
