package template

import (
	"fmt"
	"strings"
	"time"
)

// clock are the directives of strftime that Go's layouts have.
var clock = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon", 'H': "15",
	'M': "04", 'S': "05", 'p': "PM", 'I': "03", 'y': "06", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
	'R': "15:04",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime writes the time as Python does in the C locale.
func (r *run) strftime(format string) string {
	now := r.now()
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		short := format[i] == '-' && i+1 < len(format) // %-d: without a leading zero
		if short {
			i++
		}
		text, ok := directive(format[i], now)
		if !ok {
			r.fail("strftime_now: the directive %%%c is not supported", format[i])
		}
		if short {
			if text = strings.TrimLeft(text, "0 "); text == "" {
				text = "0"
			}
		}
		b.WriteString(text)
	}
	r.alloc(b.Len())
	return b.String()
}

func directive(c byte, t time.Time) (string, bool) {
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 's':
		return fmt.Sprint(t.Unix()), true
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1), true
	case 'w':
		return fmt.Sprint(int(t.Weekday())), true
	case 'G', 'V':
		year, week := t.ISOWeek()
		if c == 'G' {
			return fmt.Sprint(year), true
		}
		return fmt.Sprintf("%02d", week), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7), true
	case 'z', 'Z': // the time is a naive one
		return "", true
	}
	layout, ok := clock[c]
	return t.Format(layout), ok
}
