// Package picture reads PNG and JPEG files to bytes, writes PNG, and draws pictures as text for terminals. It knows no
// tensors.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // registers the format
	"image/png"
	"io"
	"os"
)

// Picture is a picture's samples, of 8 bits each: row by row, in each row pixel by pixel, in each pixel channel by
// channel. One channel is grey, three are red, green and blue, four have alpha behind these, which colours are not
// multiplied by.
type Picture struct {
	Height, Width, Channels int
	Samples                 []byte // Height * Width * Channels
}

// Size is what a file's header says of its picture.
type Size struct{ Height, Width, Channels int }

const (
	maxFile   = 1 << 28 // bytes of a file that is read
	maxPixels = 1 << 27
	// maxPerByte is more than the pixels or samples that a byte of a file can make: deflate makes 1032 bytes of one at
	// most, and a bit of a JPEG file a block of 64 pixels.
	maxPerByte = 1100
)

// ReadSize reads the header of a PNG or JPEG file. It fails where Read does because of the header alone.
func ReadSize(path string) (Size, error) {
	f, err := os.Open(path)
	if err != nil {
		return Size{}, fmt.Errorf("cannot open %s: %w", path, cause(err))
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return Size{}, fmt.Errorf("cannot read %s: it is no regular file", path)
	}
	size, err := sizeOf(f, st.Size())
	if err != nil {
		return Size{}, fmt.Errorf("%s: %w", path, err)
	}
	return size, nil
}

// Read is the picture in a PNG or JPEG file, with 1, 3 or 4 channels; 0 stands for those that the file has: 1 for grey,
// 4 for a palette with transparency and where each pixel has an alpha, else 3. Samples of 16 bits lose the lower 8.
// Grey is made of colours by the weights of ITU-R BT.601; alpha is 255 where there is none, and is left out where none
// is asked for. It is an error if the file is cut short or damaged, is larger than 256 MiB, has more than 2^27 pixels,
// or has a header that its bytes cannot fulfil; nothing is allocated for such pixels.
func Read(path string, channels int) (*Picture, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	p, err := decode(data, channels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// load reads a file.
func load(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, cause(err))
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return data, nil
}

// cause is an error of the file system without its operation and path.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// sizeOf is what the header of a file of that many bytes says, if that can be.
func sizeOf(r io.Reader, length int64) (Size, error) {
	c, kind, err := image.DecodeConfig(r)
	if errors.Is(err, image.ErrFormat) {
		return Size{}, errors.New("it is neither a PNG nor a JPEG file")
	}
	if err != nil {
		return Size{}, damaged(err)
	}
	if c.Width <= 0 || c.Height <= 0 {
		return Size{}, fmt.Errorf("the picture has %d x %d pixels, want at least one", c.Height, c.Width)
	}
	if c.Width > maxPixels/c.Height {
		return Size{}, fmt.Errorf("the picture has %d x %d pixels, which are more than %d", c.Height, c.Width, maxPixels)
	}
	pixels, most := int64(c.Width)*int64(c.Height), maxPerByte*length
	if kind == "png" {
		pixels /= 8 // a sample may be a bit
	}
	if pixels > most {
		return Size{}, fmt.Errorf("the header says %d x %d pixels, which %d bytes cannot hold", c.Height, c.Width, length)
	}
	return Size{c.Height, c.Width, channelsOf(c.ColorModel)}, nil
}

// damaged is an error of a decoder as a message has it.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut short")
	}
	return fmt.Errorf("the file is damaged: %w", err)
}

// channelsOf is how many channels a file of that model has.
func channelsOf(m color.Model) int {
	switch m {
	case color.GrayModel, color.Gray16Model:
		return 1
	case color.NRGBAModel, color.NRGBA64Model:
		return 4
	}
	if p, ok := m.(color.Palette); ok {
		for _, c := range p {
			if _, _, _, a := c.RGBA(); a != 0xffff {
				return 4
			}
		}
	}
	return 3
}

// decode is the picture in a file's bytes.
func decode(data []byte, channels int) (*Picture, error) {
	size, err := sizeOf(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	switch channels {
	case 0:
		channels = size.Channels
	case 1, 3, 4:
	default:
		return nil, fmt.Errorf("channels is %d, want 1, 3 or 4", channels)
	}
	m, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, damaged(err)
	}
	b := m.Bounds()
	if b.Dx() != size.Width || b.Dy() != size.Height {
		return nil, fmt.Errorf("the header says %d x %d pixels, and there are %d x %d", size.Height, size.Width, b.Dy(),
			b.Dx())
	}
	p := &Picture{Height: size.Height, Width: size.Width, Channels: channels,
		Samples: make([]byte, size.Height*size.Width*channels)}
	p.fill(m)
	return p, nil
}

// fill takes the pixels of an image.
func (p *Picture) fill(m image.Image) {
	if g, ok := m.(*image.Gray); ok && p.Channels == 1 {
		for y := range p.Height {
			copy(p.Samples[y*p.Width:][:p.Width], g.Pix[y*g.Stride:])
		}
		return
	}
	b := m.Bounds()
	row := image.NewNRGBA(image.Rect(b.Min.X, 0, b.Max.X, 1))
	out := p.Samples
	for y := range p.Height {
		nrgbaRow(row, m, b.Min.Y+y)
		for x := range p.Width {
			c := row.Pix[4*x : 4*x+4]
			if p.Channels == 1 {
				out[0] = luma(c[0], c[1], c[2])
			} else {
				copy(out[:p.Channels], c)
			}
			out = out[p.Channels:]
		}
	}
}

// nrgbaRow sets row to row y of m.
func nrgbaRow(row *image.NRGBA, m image.Image, y int) {
	b := m.Bounds()
	switch m := m.(type) {
	case *image.NRGBA:
		copy(row.Pix, m.Pix[m.PixOffset(b.Min.X, y):][:len(row.Pix)])
	case *image.NRGBA64: // what is not multiplied stays so
		for x := b.Min.X; x < b.Max.X; x++ {
			c := m.NRGBA64At(x, y)
			row.SetNRGBA(x, 0, color.NRGBA{R: uint8(c.R >> 8), G: uint8(c.G >> 8), B: uint8(c.B >> 8), A: uint8(c.A >> 8)})
		}
	case *image.Paletted:
		for x := b.Min.X; x < b.Max.X; x++ {
			row.Set(x, 0, m.At(x, y))
		}
	default: // opaque ones
		rgba := image.RGBA{Pix: row.Pix, Stride: row.Stride, Rect: row.Rect}
		draw.Draw(&rgba, row.Rect, m, image.Pt(b.Min.X, y), draw.Src)
	}
}

// luma is the grey of a colour: ITU-R BT.601's weights, in 16 bits.
func luma(r, g, b byte) byte {
	return byte((19595*uint32(r) + 38470*uint32(g) + 7471*uint32(b) + 1<<15) >> 16)
}

// check says why p is no picture.
func (p *Picture) check() error {
	if err := CheckSize(p.Height, p.Width); err != nil {
		return err
	}
	if p.Channels != 1 && p.Channels != 3 && p.Channels != 4 {
		return fmt.Errorf("the picture has %d channels, want 1, 3 or 4", p.Channels)
	}
	if len(p.Samples) != p.Height*p.Width*p.Channels {
		return fmt.Errorf("%d x %d x %d samples are %d, not %d", p.Height, p.Width, p.Channels,
			p.Height*p.Width*p.Channels, len(p.Samples))
	}
	return nil
}

// WritePNG writes the picture as a PNG file.
func (p *Picture) WritePNG(w io.Writer) error {
	if err := p.check(); err != nil {
		return err
	}
	bounds := image.Rect(0, 0, p.Width, p.Height)
	switch p.Channels {
	case 1:
		return png.Encode(w, &image.Gray{Pix: p.Samples, Stride: p.Width, Rect: bounds})
	case 4:
		return png.Encode(w, &image.NRGBA{Pix: p.Samples, Stride: 4 * p.Width, Rect: bounds})
	}
	m := image.NewRGBA(bounds) // all opaque, so that the file has three channels
	for i := range p.Height * p.Width {
		copy(m.Pix[4*i:], p.Samples[3*i:3*i+3])
		m.Pix[4*i+3] = 255
	}
	return png.Encode(w, m)
}
