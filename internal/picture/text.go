package picture

import (
	"fmt"
	"strings"
)

// Text draws the picture for a terminal, each character two pixels high, in at most columns columns: a larger picture
// is made smaller by averages. With color the characters are half blocks in 24-bit colours, by the escape sequences of
// ISO 8613-6; without, blocks and shades that are brighter where the picture is. Alpha lets black through. Each line
// ends with a newline. stop, where it is not nil, is asked before each line: an error ends the work.
func (p *Picture) Text(columns int, color bool, stop func() error) (string, error) {
	if err := p.check(); err != nil {
		return "", err
	}
	if columns < 1 {
		return "", fmt.Errorf("columns is %d, want at least 1", columns)
	}
	w, h := p.Width, p.Height
	if w > columns {
		w, h = columns, max(1, (p.Height*columns+p.Width/2)/p.Width)
	}
	var out strings.Builder
	for y := 0; y < h; y += 2 {
		if stop != nil {
			if err := stop(); err != nil {
				return "", err
			}
		}
		var before [2]rgb
		for x := range w {
			cell := [2]rgb{p.average(x, y, w, h), {}}
			if y+1 < h {
				cell[1] = p.average(x, y+1, w, h)
			}
			if !color {
				out.WriteString(shade(cell[0].luma(), cell[1].luma()))
				continue
			}
			for i, ground := range []string{"38", "48"} {
				if x == 0 || cell[i] != before[i] {
					fmt.Fprintf(&out, "\x1b[%s;2;%d;%d;%dm", ground, cell[i][0], cell[i][1], cell[i][2])
				}
			}
			before = cell
			out.WriteString("▀")
		}
		if color {
			out.WriteString("\x1b[0m")
		}
		out.WriteByte('\n')
	}
	return out.String(), nil
}

type rgb [3]byte

func (c rgb) luma() int { return int(luma(c[0], c[1], c[2])) }

// average is the colour of pixel (x, y) of the picture in w x h pixels.
func (p *Picture) average(x, y, w, h int) rgb {
	var sum [3]int
	n := 0
	for j := y * p.Height / h; j < max((y+1)*p.Height/h, y*p.Height/h+1); j++ {
		for i := x * p.Width / w; i < max((x+1)*p.Width/w, x*p.Width/w+1); i++ {
			c := p.Samples[(j*p.Width+i)*p.Channels:][:p.Channels]
			alpha := 255
			if p.Channels == 4 {
				alpha = int(c[3])
			}
			for k := range sum {
				sum[k] += int(c[min(k, p.Channels-1)]) * alpha
			}
			n++
		}
	}
	var out rgb
	for k := range out {
		out[k] = byte((sum[k] + 255*n/2) / (255 * n))
	}
	return out
}

// shade is a character for two pixels of those greys.
func shade(top, bottom int) string {
	const contrast = 96
	switch {
	case top-bottom > contrast:
		return "▀"
	case bottom-top > contrast:
		return "▄"
	}
	return [...]string{" ", "░", "▒", "▓", "█"}[(top+bottom)*5/(2*256)]
}
