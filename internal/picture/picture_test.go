package picture_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/picture"
)

// What Pillow reads of the files of testdata/make.py. Decoders of JPEG may round differently.
func TestReadAsPillow(t *testing.T) {
	text, err := os.ReadFile("testdata/want.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		number := func(i int) int { n, err := strconv.Atoi(f[i]); require.NoError(t, err); return n }
		want, err := hex.DecodeString(f[4])
		require.NoError(t, err)
		path := filepath.Join("testdata", f[0])
		p, err := picture.Read(path, number(1))
		require.NoError(t, err)
		require.Equal(t, []int{number(2), number(3), len(want) / number(2) / number(3)},
			[]int{p.Height, p.Width, p.Channels}, f[0])
		if number(1) == 0 {
			size, err := picture.ReadSize(path)
			require.NoError(t, err)
			require.Equal(t, picture.Size{Height: p.Height, Width: p.Width, Channels: p.Channels}, size, f[0])
		}
		allowed := 0
		if strings.HasSuffix(f[0], "jpg") {
			allowed = 3
		}
		if f[0] == "progressive.jpg" {
			allowed = 12 // Pillow smooths colours that are stored at half the size
		}
		for i := range want {
			require.InDelta(t, want[i], p.Samples[i], float64(allowed), "%s with %s channels, sample %d", f[0], f[1], i)
		}
	}
}

// What Pillow makes of the files of testdata/make.py in other sizes. It rounds twice where the project rounds once; a
// colour of little alpha is not exact in either.
func TestResizeAsPillow(t *testing.T) {
	text, err := os.ReadFile("testdata/resized.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		number := func(i int) int { n, err := strconv.Atoi(f[i]); require.NoError(t, err); return n }
		want, err := hex.DecodeString(f[4])
		require.NoError(t, err)
		p, err := picture.Read(filepath.Join("testdata", f[0]), number(1))
		require.NoError(t, err)
		p, err = p.Resize(number(2), number(3))
		require.NoError(t, err)
		require.Equal(t, []int{number(2), number(3)}, []int{p.Height, p.Width})
		require.Len(t, p.Samples, len(want), line)
		for i := range want {
			allowed := 1.0
			switch {
			case f[0] == "rgb.jpg":
				allowed = 3 // the decoder's
			case f[0] == "rgba.png" && i%4 < 3:
				allowed = 2 + 255/max(float64(want[i|3]), 1) // what rounding makes of a colour that is multiplied
			}
			require.InDelta(t, want[i], p.Samples[i], allowed, "%s to %s x %s, sample %d", f[0], f[2], f[3], i)
		}
	}
	_, err = (&picture.Picture{Height: 1, Width: 1, Channels: 1, Samples: []byte{0}}).Resize(0, 3)
	require.EqualError(t, err, "the picture has 0 x 3 pixels, want 1 to 134217728")
	_, err = (&picture.Picture{Height: 1, Width: 1, Channels: 1, Samples: []byte{0}}).Resize(1<<40, 1<<40)
	require.ErrorContains(t, err, "want 1 to")
}

// What is written is read again, by Go's own decoder too.
func TestWritePNG(t *testing.T) {
	for _, channels := range []int{1, 3, 4} {
		p := &picture.Picture{Height: 3, Width: 2, Channels: channels}
		for i := range 6 * channels {
			p.Samples = append(p.Samples, byte(40*i+7*channels))
		}
		var b bytes.Buffer
		require.NoError(t, p.WritePNG(&b))
		m, kind, err := image.Decode(bytes.NewReader(b.Bytes()))
		require.NoError(t, err)
		require.Equal(t, "png", kind)
		if channels == 3 {
			require.Equal(t, color.RGBA{p.Samples[15], p.Samples[16], p.Samples[17], 255}, m.At(1, 2))
		}
		file := filepath.Join(t.TempDir(), "a.png")
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
		again, err := picture.Read(file, 0)
		require.NoError(t, err)
		require.Equal(t, p, again)
	}
	wrong := func(p picture.Picture, want string) { require.ErrorContains(t, p.WritePNG(nil), want) }
	wrong(picture.Picture{Height: 2, Width: 2, Channels: 3}, "2 x 2 x 3 samples are 12, not 0")
	wrong(picture.Picture{Height: 2, Width: 2, Channels: 2}, "2 channels, want 1, 3 or 4")
	wrong(picture.Picture{}, "0 x 0 pixels")
}

// A damaged file is an error, and a header that lies allocates nothing.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	read := func(data []byte) error {
		file := filepath.Join(dir, "a")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		_, err := picture.Read(file, 0)
		if err != nil {
			require.Contains(t, err.Error(), file)
		}
		return err
	}
	for _, name := range []string{"rgb.png", "palette.png", "rgb.jpg", "progressive.jpg"} {
		whole, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		require.NoError(t, read(whole))
		for n := 0; n < len(whole)-16; n += 5 { // the end of a PNG file is a chunk of nothing
			require.Error(t, read(whole[:n]), "%s, %d bytes", name, n)
		}
		if strings.HasSuffix(name, "png") {
			for i := 0; i < len(whole)-12; i += 3 {
				bad := bytes.Clone(whole)
				bad[i] ^= 0x10
				require.Error(t, read(bad), "%s, byte %d", name, i)
			}
		}
	}
	require.ErrorContains(t, read([]byte("GIF89a")), "neither a PNG nor a JPEG")
	require.ErrorContains(t, read(nil), "neither a PNG nor a JPEG")

	whole, err := os.ReadFile("testdata/rgb.png")
	require.NoError(t, err)
	lie := func(w, h uint32) error {
		bad := bytes.Clone(whole)
		binary.BigEndian.PutUint32(bad[16:], w)
		binary.BigEndian.PutUint32(bad[20:], h)
		binary.BigEndian.PutUint32(bad[29:], crc32.ChecksumIEEE(bad[12:29]))
		return read(bad)
	}
	require.ErrorContains(t, lie(20000, 5000), "5000 x 20000 pixels, which 178 bytes cannot hold")
	require.ErrorContains(t, lie(1<<20, 1<<20), "more than 134217728")
	require.Error(t, lie(0, 1))
	require.Error(t, lie(7, 6), "rows are missing")

	_, err = picture.Read(filepath.Join(dir, "none.png"), 0)
	require.ErrorContains(t, err, "none.png: no such file")
	_, err = picture.Read("testdata/rgb.png", 2)
	require.ErrorContains(t, err, "channels is 2, want 1, 3 or 4")
	_, err = picture.Read(dir, 0)
	require.Error(t, err)
}

func TestText(t *testing.T) {
	p := &picture.Picture{Height: 3, Width: 2, Channels: 3, Samples: []byte{
		255, 0, 0, 0, 255, 0,
		0, 0, 255, 255, 255, 255,
		9, 8, 7, 9, 8, 7}}
	text, err := p.Text(80, true, nil)
	require.NoError(t, err)
	require.Equal(t, "\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m▀\x1b[38;2;0;255;0m\x1b[48;2;255;255;255m▀\x1b[0m\n"+
		"\x1b[38;2;9;8;7m\x1b[48;2;0;0;0m▀▀\x1b[0m\n", text)

	p = &picture.Picture{Height: 2, Width: 5, Channels: 1, Samples: []byte{255, 255, 0, 0, 120, 255, 0, 255, 0, 120}}
	text, err = p.Text(80, false, nil)
	require.NoError(t, err)
	require.Equal(t, "█▀▄ ▒\n", text)

	// Four pixels become one: their average; what is transparent is black.
	p = &picture.Picture{Height: 2, Width: 2, Channels: 4, Samples: []byte{
		200, 0, 0, 255, 100, 0, 0, 255, 200, 200, 200, 0, 100, 0, 0, 255}}
	text, err = p.Text(1, true, nil)
	require.NoError(t, err)
	require.Equal(t, "\x1b[38;2;100;0;0m\x1b[48;2;0;0;0m▀\x1b[0m\n", text)

	_, err = p.Text(0, true, nil)
	require.ErrorContains(t, err, "columns is 0")
}

// What asks for an end ends a text.
func TestTextStops(t *testing.T) {
	end := errors.New("enough")
	p := &picture.Picture{Height: 4, Width: 1, Channels: 1, Samples: make([]byte, 4)}
	lines := 0
	_, err := p.Text(80, false, func() error {
		if lines++; lines > 1 {
			return end
		}
		return nil
	})
	require.ErrorIs(t, err, end)
	require.Equal(t, 2, lines)
}
