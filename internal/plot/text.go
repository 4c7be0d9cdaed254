package plot

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// ansi are the colours of series on terminals, by the escape sequences of ECMA-48.
var ansi = []string{"34", "33", "32", "31", "35", "36"}

// Text draws the figure with at most so many columns, of which it needs 24, and about so many rows, with colours or
// without. Lines and points are dots of braille, two by four in a character.
func (f *Figure) Text(columns, rows int, color bool) (string, error) {
	columns, rows = max(columns, 24), max(rows, 4)
	x, y, err := f.axes(max(2, columns/16), max(2, rows/4))
	if err != nil {
		return "", err
	}
	if f.Bars != nil {
		return f.barsText(columns)
	}
	widest := 0
	for _, t := range y.ticks {
		widest = max(widest, len(y.text(t)))
	}
	g := newGrid(columns-widest-2, rows)
	for i, s := range f.Series {
		for run := range s.runs() {
			for j, p := range run {
				if err := f.stopped(j); err != nil {
					return "", err
				}
				if s.Points || j == 0 {
					g.dot(x.at(p[0]), y.at(p[1]), i)
				} else {
					g.line(x.at(run[j-1][0]), y.at(run[j-1][1]), x.at(p[0]), y.at(p[1]), i)
				}
			}
		}
	}
	var b strings.Builder
	heading(&b, f.Title, columns)
	heading(&b, f.YLabel, 0)
	marks := map[int]string{}
	for _, t := range y.ticks {
		marks[int(math.Round((1-y.at(t))*float64(rows-1)))] = y.text(t)
	}
	for r := range rows {
		edge := "│"
		if marks[r] != "" {
			edge = "┤"
		}
		fmt.Fprintf(&b, "%*s %s%s\n", widest, marks[r], edge, g.row(r, color))
	}
	b.WriteString(strings.Repeat(" ", widest+1) + "└" + xMarks(x, g.columns, widest+2))
	if f.XLabel != "" {
		heading(&b, f.XLabel, columns)
	}
	for i, label := range f.labels() {
		fmt.Fprintf(&b, "%s %s\n", painted("──", i, color), label)
	}
	return b.String(), nil
}

// heading writes a line of text in the middle of so many columns.
func heading(b *strings.Builder, text string, columns int) {
	if text = short(text); text != "" {
		b.WriteString(strings.Repeat(" ", max(0, (columns-utf8.RuneCountInString(text))/2)) + text + "\n")
	}
}

// xMarks are the line under a frame with its marks, and their numbers under it.
func xMarks(x axis, columns, indent int) string {
	line := []rune(strings.Repeat("─", columns))
	numbers := []rune(strings.Repeat(" ", indent+columns+12))
	free := 0
	for _, t := range x.ticks {
		at := int(math.Round(x.at(t) * float64(columns-1)))
		text := []rune(x.text(t))
		begin := max(0, indent+at-len(text)/2)
		if begin < free {
			continue
		}
		line[at] = '┬'
		copy(numbers[begin:], text)
		free = begin + len(text) + 1
	}
	return string(line) + "\n" + strings.TrimRight(string(numbers), " ") + "\n"
}

// painted is a text in a series' colour.
func painted(text string, series int, color bool) string {
	if !color || series < 0 {
		return text
	}
	return "\x1b[" + ansi[series%len(ansi)] + "m" + text + "\x1b[0m"
}

// barsText draws a histogram: a row for each bar.
func (f *Figure) barsText(columns int) (string, error) {
	var b strings.Builder
	heading(&b, f.Title, columns)
	most, widest := 1, 0
	edges := make([]string, len(f.Bars))
	for i, bar := range f.Bars {
		if err := f.stopped(i); err != nil {
			return "", err
		}
		most = max(most, bar.Count)
		edges[i] = fmt.Sprintf("%.4g", bar.Low)
		widest = max(widest, len(edges[i]))
	}
	room := max(8, columns-widest-3-len(fmt.Sprint(most)))
	for i, bar := range f.Bars {
		if err := f.stopped(i); err != nil {
			return "", err
		}
		eighths := int(math.Round(float64(bar.Count) / float64(most) * float64(8*room)))
		if eighths == 0 && bar.Count > 0 {
			eighths = 1
		}
		full := strings.Repeat("█", eighths/8)
		if part := eighths % 8; part > 0 {
			full += string([]rune("▏▎▍▌▋▊▉")[part-1])
		}
		fmt.Fprintf(&b, "%*s │%s %d\n", widest, edges[i], full, bar.Count)
	}
	fmt.Fprintf(&b, "%*s │\n", widest, fmt.Sprintf("%.4g", f.Bars[len(f.Bars)-1].High))
	heading(&b, f.XLabel, columns)
	return b.String(), nil
}

// grid is characters of braille: two dots wide and four high.
type grid struct {
	columns, rows int
	cells         []byte
	series        []int // whose dots are in a cell: the last one's
}

func newGrid(columns, rows int) *grid {
	return &grid{columns, rows, make([]byte, columns*rows), make([]int, columns*rows)}
}

// braille are the bits of a character's dots, by column and row.
var braille = [2][4]byte{{1, 2, 4, 64}, {8, 16, 32, 128}}

// pixel is the dot of a place in the frame, whose sides are 1.
func (g *grid) pixel(x, y float64) (column, row int) {
	column = int(math.Round(x * float64(2*g.columns-1)))
	return column, int(math.Round((1 - y) * float64(4*g.rows-1)))
}

func (g *grid) set(column, row, series int) {
	if column < 0 || row < 0 || column >= 2*g.columns || row >= 4*g.rows {
		return
	}
	i := row/4*g.columns + column/2
	g.cells[i] |= braille[column%2][row%4]
	g.series[i] = series
}

func (g *grid) dot(x, y float64, series int) {
	column, row := g.pixel(x, y)
	g.set(column, row, series)
}

func (g *grid) line(x0, y0, x1, y1 float64, series int) {
	a, b := g.pixel(x0, y0)
	c, d := g.pixel(x1, y1)
	steps := max(abs(c-a), abs(d-b), 1)
	for i := range steps + 1 {
		t := float64(i) / float64(steps)
		g.set(a+int(math.Round(t*float64(c-a))), b+int(math.Round(t*float64(d-b))), series)
	}
}

func abs(n int) int { return max(n, -n) }

// row is a row of characters.
func (g *grid) row(r int, color bool) string {
	var b strings.Builder
	for i := r * g.columns; i < (r+1)*g.columns; i++ {
		if g.cells[i] == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(painted(string(rune(0x2800+int(g.cells[i]))), g.series[i], color))
	}
	return strings.TrimRight(b.String(), " ")
}
