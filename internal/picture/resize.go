package picture

import (
	"fmt"
	"image"

	"golang.org/x/image/draw"
)

// Resize is the picture with that many pixels: each is an average of those near its place, weighted by a triangle that
// is as wide as two pixels of the smaller picture. That is bilinear interpolation where the picture becomes larger, and
// an average over all that it loses where it becomes smaller, as Pillow's and torchvision's bilinear resize. Colours
// count by their alpha.
func (p *Picture) Resize(height, width int) (*Picture, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := CheckSize(height, width); err != nil {
		return nil, err
	}
	if height == p.Height && width == p.Width {
		return p, nil
	}
	out := &Picture{Height: height, Width: width, Channels: p.Channels, Samples: make([]byte, height*width*p.Channels)}
	from, to := image.Rect(0, 0, p.Width, p.Height), image.Rect(0, 0, width, height)
	src, dst := &image.NRGBA{Pix: p.spread(), Stride: 4 * p.Width, Rect: from}, image.NewRGBA(to)
	draw.BiLinear.Scale(dst, to, src, from, draw.Src, nil)
	out.fill(&image.NRGBA{Pix: plain(dst.Pix), Stride: dst.Stride, Rect: to})
	return out, nil
}

// CheckSize says why there is no picture of that many pixels.
func CheckSize(height, width int) error {
	if height <= 0 || width <= 0 || width > maxPixels/height {
		return fmt.Errorf("the picture has %d x %d pixels, want 1 to %d", height, width, maxPixels)
	}
	return nil
}

// spread is the samples as four channels.
func (p *Picture) spread() []byte {
	if p.Channels == 4 {
		return p.Samples
	}
	out := make([]byte, 4*p.Height*p.Width)
	for i := range p.Height * p.Width {
		c := p.Samples[i*p.Channels:][:p.Channels]
		out[4*i], out[4*i+1], out[4*i+2], out[4*i+3] = c[0], c[len(c)/2], c[len(c)-1], 255
	}
	return out
}

// plain takes the alpha out of colours that are multiplied by it, in place.
func plain(pix []byte) []byte {
	for i := 0; i < len(pix); i += 4 {
		if a := int(pix[i+3]); a != 0 && a != 255 {
			for c := i; c < i+3; c++ {
				pix[c] = byte(min((int(pix[c])*255+a/2)/a, 255))
			}
		}
	}
	return pix
}
