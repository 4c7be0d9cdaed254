package jit

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// collector knows what Go's garbage collector is doing. Go does not say; but it counts the collections that have ended
// and the pauses of all goroutines, of which each collection has one before it marks what lives and one after. A pause
// is counted while it lasts, and so is a collection in its last one.
type collector struct {
	begin sync.Once
	rest  atomic.Pointer[counts] // those at a time after the last collection that is known to have ended
}

// counts are what Go has counted since the process began.
type counts struct{ collections, pauses uint64 }

var goCollector collector

// sentinel is garbage at the next collection. It holds a pointer so as to have memory of its own.
type sentinel struct{ _ *sentinel }

// watch begins to take the counts whenever a collection has ended.
func (c *collector) watch() { c.begin.Do(c.ended) }

func (c *collector) ended() {
	now := count()
	c.rest.Store(&now)
	runtime.AddCleanup(new(sentinel), (*collector).ended, c)
}

// marking reports whether the collector marks what lives: there has been a pause since a collection ended, and no other
// one has ended since. A collection that begins before the end of the last one was noticed is not seen.
func (c *collector) marking() bool {
	now, rest := count(), c.rest.Load()
	return now.collections == rest.collections && now.pauses > rest.pauses
}

var countSamples = sync.Pool{New: func() any {
	return &[]metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/stopping/gc:seconds"}}
}}

func count() counts {
	s := countSamples.Get().(*[]metrics.Sample)
	defer countSamples.Put(s)
	metrics.Read(*s)
	return counts{collections: number((*s)[0].Value, 0), pauses: number((*s)[1].Value, 0)}
}

// number is a metric's value, how many there are in a histogram, or what is given where this Go has no such metric.
func number(v metrics.Value, none uint64) (n uint64) {
	switch v.Kind() {
	case metrics.KindUint64:
		return v.Uint64()
	case metrics.KindFloat64Histogram:
		for _, c := range v.Float64Histogram().Counts {
			n += c
		}
		return n
	}
	return none
}
