package kerneltest

import (
	"runtime"
	"sync"
)

// Running is a launch in execution, of any executor.
type Running interface {
	Work()
	Err() error
	Parallelism() (goroutines int, long bool)
}

// Run has an executor's NewRun ready a launch, executes it on so many goroutines, one for each processor if workers is
// 0, and returns how it ended.
func Run[L any, R Running](newRun func(L) (R, error), launch L, workers int) error {
	r, err := newRun(launch)
	if err != nil {
		return err
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	most, _ := r.Parallelism()
	var others sync.WaitGroup
	for range min(workers, most) - 1 {
		others.Go(r.Work)
	}
	r.Work()
	others.Wait()
	err = r.Err()
	if again, ok := any(r).(interface{ Release() }); ok {
		again.Release()
	}
	return err
}
