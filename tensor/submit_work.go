package tensor

import (
	"context"
	"slices"
)

// Work is what a call of Submit handed over that had not been handed over before. It is done, without an error, also
// when it was stopped since somebody who waited for it, or for what needs it, gave up: its arrays are lazy then.
type Work struct{ job *job }

// Wait waits for all of the work, or ctx, and returns the work's first error, or the context's cause.
func (w *Work) Wait(ctx context.Context) error {
	j := w.job
	if j == nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	stopped := j.stopped.Load()
	for next := j; ; {
		waiting := waiter{ctx: ctx, job: next}
		waiting.begin()
		err := next.waitEnd(ctx)
		waiting.end()
		if err != nil {
			return err
		}
		lost, err := j.stillLost()
		if stopped || len(lost) == 0 {
			return err
		}
		again := submitValues(context.Background(), slices.Clone(lost), j.fallback)
		if again != nil { // it is waited for, and goes on
			next = again
		} else if err := lost[0].Node.wait(ctx); err != nil && ctx.Err() != nil { // somebody else has it computed
			return err
		}
	}
}

// Stop ends the work with a cause, but for what somebody waits for: its arrays are lazy then.
func (w *Work) Stop(cause error) {
	if w.job == nil {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	gone := waiter{ctx: ctx, job: w.job}
	gone.giveUp(nil)
}

// Done reports whether all of the work has been done, and its first error so far.
func (w *Work) Done() (bool, error) {
	if w.job == nil {
		return true, nil
	}
	done, unclaimed, err := w.job.progress()
	if unclaimed { // it may be nothing new
		claimAll(nil)
		done, _, err = w.job.progress()
	}
	return done, err
}

func (j *job) progress() (done, unclaimed bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ended, j.unsettled == unknownSegments, j.err
}

// stillLost is what the job has given up of what was asked for, without what others have had computed since, and the
// first error of the job or of these. What was found unreachable since then is nobody's loss, and no error.
func (j *job) stillLost() ([]Value, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost = slices.DeleteFunc(j.lost, func(v Value) bool {
		err := v.Node.failure()
		if j.err == nil && err != buried.err {
			j.err = err
		}
		return v.Node.now() >= Ready
	})
	return j.lost, j.err
}
