package lua51

import (
	"fmt"
	"strconv"
	"time"
)

// dated is what C's strftime writes of a time for a code, in the locale C. What is no code stays as it is.
func dated(t time.Time, code byte) string {
	hour := (t.Hour()+11)%12 + 1
	switch code {
	case 'a':
		return t.Format("Mon")
	case 'A':
		return t.Format("Monday")
	case 'b', 'h':
		return t.Format("Jan")
	case 'B':
		return t.Format("January")
	case 'c':
		return dated(t, 'a') + " " + dated(t, 'b') + fmt.Sprintf(" %2d ", t.Day()) + dated(t, 'T') + " " + dated(t, 'Y')
	case 'C':
		return two(floorDiv(t.Year(), 100))
	case 'd':
		return two(t.Day())
	case 'D', 'x':
		return dated(t, 'm') + "/" + dated(t, 'd') + "/" + dated(t, 'y')
	case 'e':
		return fmt.Sprintf("%2d", t.Day())
	case 'F':
		return dated(t, 'Y') + "-" + dated(t, 'm') + "-" + dated(t, 'd')
	case 'g':
		year, _ := t.ISOWeek()
		return two(year - 100*floorDiv(year, 100))
	case 'G':
		year, _ := t.ISOWeek()
		return strconv.Itoa(year)
	case 'H':
		return two(t.Hour())
	case 'I':
		return two(hour)
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", hour)
	case 'm':
		return two(int(t.Month()))
	case 'M':
		return two(t.Minute())
	case 'n':
		return "\n"
	case 'p':
		return t.Format("PM")
	case 'P':
		return t.Format("pm")
	case 'r':
		return dated(t, 'I') + ":" + dated(t, 'M') + ":" + dated(t, 'S') + " " + dated(t, 'p')
	case 'R':
		return dated(t, 'H') + ":" + dated(t, 'M')
	case 's':
		return strconv.FormatInt(t.Unix(), 10)
	case 'S':
		return two(t.Second())
	case 't':
		return "\t"
	case 'T', 'X':
		return dated(t, 'R') + ":" + dated(t, 'S')
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1)
	case 'U': // weeks that begin on Sundays
		return two((t.YearDay() + 6 - int(t.Weekday())) / 7)
	case 'V':
		_, week := t.ISOWeek()
		return two(week)
	case 'w':
		return strconv.Itoa(int(t.Weekday()))
	case 'W': // weeks that begin on Mondays
		return two((t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7)
	case 'y':
		return two(t.Year() - 100*floorDiv(t.Year(), 100))
	case 'Y':
		return strconv.Itoa(t.Year())
	case 'z':
		return t.Format("-0700")
	case 'Z':
		return t.Format("MST")
	case '%':
		return "%"
	}
	return "%" + string([]byte{code})
}

func two(n int) string { return fmt.Sprintf("%02d", n) }

// floorDiv is a/b rounded down, where b is positive.
func floorDiv(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}
