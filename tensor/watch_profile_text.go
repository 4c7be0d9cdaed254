package tensor

import (
	"fmt"
	"strings"
	"time"
)

// Text is the profile as a table for a terminal, of the rows that took longest, so many at most.
func (p *Profile) Text(most int) string {
	rows := p.Rows()
	var device, host, compiling time.Duration
	compiled := 0
	for _, r := range rows {
		switch r.Kernel {
		case "host":
			host += r.Time
		case "compile":
			compiling += r.Time
			compiled += r.Calls
		default:
			device += r.Time
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s in all: %s in kernels, %s in Go code of ops, %s compiling %d kernels\n", span(p.Took()),
		span(device), span(host), span(compiling), compiled)
	if len(rows) == 0 {
		return b.String()
	}
	total := device + host + compiling
	fmt.Fprintf(&b, "%9s %6s %7s %7s %9s %9s %7s %8s  %s\n", "time", "share", "calls", "copied", "per call",
		"bytes", "GB/s", "GFLOP/s", "op, kernel, line")
	var rest ProfileRow
	for i, r := range rows {
		if i < most {
			b.WriteString(r.text(total))
			continue
		}
		rest.Calls += r.Calls
		rest.Copied += r.Copied
		rest.Time += r.Time
		rest.Bytes += r.Bytes
	}
	if n := len(rows) - most; n > 0 {
		rest.Op = fmt.Sprintf("(%d rows more)", n)
		b.WriteString(rest.text(total))
	}
	return b.String()
}

// text is the row as a line of the table.
func (r *ProfileRow) text(total time.Duration) string {
	seconds := r.Time.Seconds()
	rate := func(n float64) string {
		if n == 0 || seconds == 0 {
			return "-"
		}
		return fmt.Sprintf("%.3g", n/seconds/1e9)
	}
	what := shortened(r.Op, 40)
	if r.Kernel != "" && r.Kernel != r.Op {
		what += ", " + shortened(r.Kernel, 32)
	}
	if line := r.Place.String(); line != "" {
		what += ", " + line
	}
	share := 0.0
	if total > 0 {
		share = 100 * float64(r.Time) / float64(total)
	}
	copied := "-"
	if r.Copied > 0 {
		copied = fmt.Sprint(r.Copied)
	}
	return fmt.Sprintf("%9s %5.1f%% %7d %7s %9s %9s %7s %8s  %s\n", span(r.Time), share, r.Calls, copied,
		span(r.Time/time.Duration(max(r.Calls, 1))), size(r.Bytes), rate(float64(r.Bytes)), rate(r.Flops), what)
}

// shortened is a text of at most n bytes.
func shortened(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:n-3] + "..."
}

// span is a time with its unit in three or four digits.
func span(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g us", float64(d)/1e3)
}

// size is a number of bytes with its unit.
func size(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n < 1e3:
		return fmt.Sprintf("%d B", n)
	case n < 1e6:
		return fmt.Sprintf("%.3g kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.3g MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.3g GB", float64(n)/1e9)
}
