package luabind

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/picture"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// imageRows are the functions of mx.data for pictures.
var imageRows = []row{
	{name: "data.load_image", sig: "file:any channels:int? size:ints?",
		help: "The picture in a PNG or JPEG file, as uint8 of shape (height, width, channels): 1 for grey, 3 for " +
			"red, green, blue, 4 with alpha, as it is in the file or as channels says. Of a list of files whose " +
			"pictures are of one size, an array of shape (files, height, width, channels). With size, {height, width}, " +
			"pictures are resized to it: bilinear, and averaged where they become smaller. Headers are read at once, " +
			"the rest when the array is used, by its stream: mx.async_eval reads ahead. " +
			"Samples of 16 bits lose the lower 8.",
		call: loadImage},
	{name: "data.save_image", sig: "file:string image", host: true,
		help: "Evaluates a picture and writes it to a .png file; a name without that extension gets it. Its shape " +
			"is (height, width), or with 1, 3 or 4 channels behind these; uint8, bool (false is black), or of a " +
			"floating-point type, where 0 is black and 1 the most there is. A file that is there is replaced when " +
			"all has been written.",
		call: func(a *args) any {
			path := a.newFile(".png")
			return a.save(path, a.picture(1).WritePNG)
		}},
	{name: "data.draw_image", sig: "image columns:int? color:bool?", host: true,
		help: "A text that shows a picture, as mx.data.save_image takes it, on a terminal: each character is two " +
			"pixels high. A picture wider than columns (as the environment's COLUMNS says, or the terminal, or 80) " +
			"is made smaller. With color, which is true if print writes to a terminal and the environment has no " +
			"NO_COLOR, it is made of half blocks in 24-bit colours; else of blocks and shades, brighter where the " +
			"picture is.",
		call: func(a *args) any {
			columns := textColumns(a.s)
			if a.Given(1) {
				columns = a.Int(1)
			}
			color := paints(a.s)
			if a.Given(2) {
				color = a.Bool(2)
			}
			text, err := a.picture(0).Text(columns, color, a.s.Context().Err)
			if err != nil {
				a.fail("%w", err)
			}
			return text
		}},
}

// isTerminal reports whether w, or where that is nil a standard stream, is a character device.
func isTerminal(w io.Writer, standard *os.File) bool {
	f, ok := w.(*os.File)
	if w == nil {
		f, ok = standard, true
	}
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// loadImage is mx.data.load_image.
func loadImage(a *args) any {
	var files []string
	name, single := a.raw[0].(lua.LString)
	if single {
		files = []string{string(name)}
	} else {
		texts, err := toTexts(a, a.raw[0])
		if err != nil {
			a.wrong("file", err)
		}
		if files = texts.([]string); len(files) == 0 {
			a.fail("file is an empty list, want at least one file")
		}
	}
	for i, file := range files {
		files[i] = a.readablePath(file)
	}
	channels := a.Int(1)
	if a.Given(1) && channels != 1 && channels != 3 && channels != 4 {
		a.fail("channels is %d, want 1, 3 or 4", channels)
	}
	var resized *picture.Size
	if a.Given(2) {
		to := a.Ints(2)
		if len(to) != 2 {
			a.fail("size has %s, want height and width", tensor.Count(len(to), "number"))
		}
		if err := picture.CheckSize(to[0], to[1]); err != nil {
			a.fail("size is {%d, %d}: %w", to[0], to[1], err)
		}
		resized = &picture.Size{Height: to[0], Width: to[1]}
	}
	size, err := commonSize(files, channels, resized)
	if err != nil {
		a.fail("%w", err)
	}
	shape := tensor.Shape{size.Height, size.Width, size.Channels}
	if !single {
		shape = append(tensor.Shape{len(files)}, shape...)
	}
	return format.Deferred(a.Ctx, tensor.Spec{Shape: shape, DType: tensor.Uint8}, func(dst []byte) error {
		return readImages(files, size, resized != nil, dst)
	})
}

// commonSize is the size of the pictures in files, if all have one. Where they are resized that is known but for the
// channels.
func commonSize(files []string, channels int, resized *picture.Size) (picture.Size, error) {
	var first picture.Size
	for i, file := range files {
		size, err := picture.ReadSize(file)
		if err != nil {
			return first, err
		}
		if channels != 0 {
			size.Channels = channels
		}
		if resized != nil {
			size.Height, size.Width = resized.Height, resized.Width
		}
		if i == 0 {
			first = size
		} else if size != first {
			return first, fmt.Errorf("%s has %d x %d pixels of %s, %s has %d x %d of %s", files[0], first.Height,
				first.Width, tensor.Count(first.Channels, "channel"), file, size.Height, size.Width,
				tensor.Count(size.Channels, "channel"))
		}
	}
	return first, nil
}

// readImages reads pictures of that size, or resizes them to it, one behind the other to dst, some at a time.
func readImages(files []string, size picture.Size, resize bool, dst []byte) error {
	each := size.Height * size.Width * size.Channels
	var next atomic.Int64
	var readers sync.WaitGroup
	failed := make([]error, len(files))
	for range min(len(files), runtime.GOMAXPROCS(0)) {
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files); i = int(next.Add(1)) - 1 {
				p, err := picture.Read(files[i], size.Channels)
				if err == nil && resize {
					p, err = p.Resize(size.Height, size.Width)
				}
				if err == nil && (p.Height != size.Height || p.Width != size.Width) {
					err = fmt.Errorf("%s has changed since its header was read", files[i])
				}
				if failed[i] = err; err == nil {
					copy(dst[i*each:], p.Samples)
				}
			}
		})
	}
	readers.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// picture is argument i, evaluated, as a picture.
func (a *args) picture(i int) *picture.Picture {
	x := a.Array(i)
	spec := x.Spec()
	if n := len(spec.Shape); n != 2 && n != 3 {
		a.fail("%s has shape %v, want (height, width) or (height, width, channels)", a.f.params[i].Name, spec.Shape)
	}
	if d := spec.DType; d != tensor.Uint8 && d != tensor.Bool && !d.IsFloat() {
		a.fail("%s is %v, want uint8, bool or a floating-point type", a.f.params[i].Name, d)
	}
	p := &picture.Picture{Height: spec.Shape[0], Width: spec.Shape[1], Channels: 1}
	if len(spec.Shape) == 3 {
		p.Channels = spec.Shape[2]
	}
	a.s.Charge(int64(2*spec.Shape.Size()) * int64(spec.DType.Size()))
	p.Samples = samples(a.s.bytes(x), spec.DType)
	return p
}

// samples are elements as samples of 8 bits.
func samples(b []byte, d tensor.DType) []byte {
	if d == tensor.Uint8 {
		return b
	}
	size := d.Size()
	out := make([]byte, len(b)/size)
	for i := range out {
		if d == tensor.Bool {
			out[i] = 255 * b[i]
		} else if v := float(b[i*size:], d); v > 0 { // a NaN is black
			out[i] = byte(math.RoundToEven(255 * min(v, 1)))
		}
	}
	return out
}
