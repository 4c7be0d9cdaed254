package arm64

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

var update = flag.Bool("update", false, "have GNU as write testdata/golden.txt anew")

const goldenHead = "# What GNU as makes of each instruction: go test ./metal/jit/arm64 -run Golden -update\n"

var conds = [...]string{"eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"}

// sample is an instruction as the assembler reads it: the parts of a spec's text are drawn and put into the word.
type sample struct {
	r    *rand.Rand
	i    inst
	wide bool
}

var part = regexp.MustCompile(`\{(\w+)\}|\br\{`)

// text fills in the text of an operation.
func (s *sample) text(t string) string {
	s.wide = s.r.IntN(2) == 0
	if regexp.MustCompile(`\br\{`).MatchString(t) {
		letter := "w{"
		if s.wide {
			letter, s.i.imm = "x{", s.i.imm|sf
		}
		t = regexp.MustCompile(`\br\{`).ReplaceAllString(t, letter)
	}
	t = part.ReplaceAllStringFunc(t, func(p string) string { return s.part(p[1 : len(p)-1]) })
	return strings.NewReplacer("{{", "{", "}}", "}").Replace(t)
}

// upTo draws a number and puts it into the word.
func (s *sample) upTo(n, at int) int {
	x := s.r.IntN(n)
	s.i.imm |= uint32(x) << at
	return x
}

func (s *sample) register(p *code.R) string {
	if *p == 0 {
		*p = v(s.r.IntN(31))
	}
	return fmt.Sprint(p.Num())
}

// part draws one part.
func (s *sample) part(name string) string {
	lane := func(size, at int) string { // the number of a lane of so many bytes
		n := s.r.IntN(16 / size)
		s.i.imm |= uint32(n*2*size|size) << 16
		return fmt.Sprint(n)
	}
	shift := func(width int, right bool) string {
		n := 1 + s.r.IntN(width-1)
		if right {
			s.i.imm |= uint32(2*width-n) << 16
		} else {
			s.i.imm |= uint32(width+n) << 16
		}
		return fmt.Sprint(n)
	}
	switch name {
	case "d":
		return s.register(&s.i.d)
	case "n":
		return s.register(&s.i.n)
	case "m":
		return s.register(&s.i.m)
	case "a":
		return s.register(&s.i.a)
	case "next":
		return fmt.Sprint(s.i.n.Num() + 1)
	case "right32":
		return shift(32, true)
	case "right64":
		return shift(64, true)
	case "left32":
		return shift(32, false)
	case "left64":
		return shift(64, false)
	case "ext":
		return fmt.Sprint(s.upTo(16, 11))
	case "laneB":
		return lane(1, 1)
	case "laneH":
		return lane(2, 2)
	case "laneS":
		return lane(4, 3)
	case "laneD":
		return lane(8, 4)
	case "fromS":
		return fmt.Sprint(s.upTo(4, 13))
	case "fromD":
		return fmt.Sprint(s.upTo(2, 14))
	case "indexS", "indexD":
		n := s.r.IntN(4)
		if name == "indexD" {
			n = s.r.IntN(2)
		}
		s.i.imm |= ld1Lane(n, name == "indexD")
		return fmt.Sprint(n)
	case "byte":
		n := s.r.IntN(256)
		s.i.imm |= uint32(n>>5)<<16 | uint32(n&31)<<5
		return fmt.Sprint(n)
	case "lsl":
		return fmt.Sprint(8 * s.upTo(4, 13))
	case "lsl1":
		return fmt.Sprint(8 * s.upTo(2, 13))
	case "bytes":
		n, text := s.r.IntN(256), ""
		s.i.imm |= uint32(n>>5)<<16 | uint32(n&31)<<5
		for k := range 8 {
			text = map[int]string{0: "00", 1: "ff"}[n>>k&1] + text
		}
		return "0x" + text
	case "float":
		s.i.imm |= 0x70>>5<<16 | (0x70&31)<<5
		return "1.0"
	}
	return s.general(name)
}

// general draws a part of an instruction on general registers, or of an address.
func (s *sample) general(name string) string {
	width := 32
	if s.wide {
		width = 64
	}
	switch name {
	case "address":
		s.i.n = v(s.r.IntN(31))
		size := 1 << (specs[s.i.op].word >> 30)
		if w := specs[s.i.op].word; w>>24&0x3f == 0x3c && w>>23&1 != 0 && w>>30 == 0 {
			size = 16
		}
		switch s.r.IntN(3) {
		case 0:
			off := size * s.r.IntN(4096)
			s.i.imm = scaled(int32(off), int32(size))
			return fmt.Sprintf("[x%d, #%d]", s.i.n.Num(), off)
		case 1:
			s.i.m, s.i.imm = v(s.r.IntN(31)), 1<<21|0x6800
			return fmt.Sprintf("[x%d, x%d]", s.i.n.Num(), s.i.m.Num())
		}
		off := -1 - s.r.IntN(256)
		s.i.imm = uint32(off&0x1ff) << 12
		return fmt.Sprintf("[x%d, #%d]", s.i.n.Num(), off)
	case "pair":
		n := s.r.IntN(128) - 64
		s.i.imm |= uint32(n&0x7f) << 15
		return fmt.Sprint(16 * n)
	case "prefetch":
		s.i.n, s.i.imm = v(s.r.IntN(31)), 1<<24
		if s.r.IntN(2) == 0 {
			s.i.imm |= 16
			return fmt.Sprintf("pstl1keep, [x%d]", s.i.n.Num())
		}
		return fmt.Sprintf("pldl1keep, [x%d]", s.i.n.Num())
	case "ext3":
		return fmt.Sprint(s.upTo(5, 10))
	case "shift":
		return fmt.Sprint(s.upTo(width, 10))
	case "imm12":
		return fmt.Sprint(s.upTo(4096, 10))
	case "mask":
		for {
			n := (uint64(1)<<(1+s.r.IntN(width-1)) - 1) << s.r.IntN(width)
			if !s.wide {
				n &= 1<<32 - 1
			}
			if imm, ok := bitmask(n, s.wide); ok {
				s.i.imm |= imm
				return fmt.Sprintf("%#x", n)
			}
		}
	case "imm16":
		return fmt.Sprint(s.upTo(1<<16, 5))
	case "hw":
		return fmt.Sprint(16 * s.upTo(width/16, 21))
	case "immr":
		if s.wide {
			s.i.imm |= 1 << 22
		}
		return fmt.Sprint(s.upTo(width, 16))
	case "imms":
		return fmt.Sprint(s.upTo(width, 10))
	case "cond":
		return conds[s.upTo(len(conds), 12)]
	case "notcond":
		c := s.r.IntN(len(conds))
		s.i.imm |= uint32(c^1) << 12
		return conds[c]
	case "jcond":
		return conds[s.upTo(len(conds), 0)]
	case "bit":
		return fmt.Sprint(s.upTo(32, 19))
	case "label", "pool", "page": // the instruction's own place
		return "."
	case "size":
		n := s.upTo(4, 30)
		s.wide = n == 3
		return [...]string{"b", "h", "", ""}[n]
	case "sized":
		return map[bool]string{false: "w", true: "x"}[s.wide]
	}
	return "?" + name
}

// goldens returns the words of samples of all operations, and their texts.
func goldens(t *testing.T) (words []uint32, texts []string) {
	r := rand.New(rand.NewPCG(1, 2))
	for op := loadLive + 1; op < numOpcodes; op++ {
		require.NotEmpty(t, specs[op].text, "operation %d", op)
		for range 6 {
			s := sample{r: r, i: inst{op: op}}
			text := s.text(specs[op].text)
			w, err := s.i.word()
			require.NoError(t, err, text)
			words, texts = append(words, w), append(texts, text)
		}
	}
	return words, texts
}

// TestGolden: every operation, with any operands, has the word that GNU as makes of its text.
func TestGolden(t *testing.T) {
	words, texts := goldens(t)
	path := filepath.Join("testdata", "golden.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(goldenHead+assembled(t, texts)), 0o644))
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(strings.TrimPrefix(string(b), goldenHead), "\n"), "\n")
	require.Len(t, lines, len(texts))
	for k, line := range lines {
		want, text, _ := strings.Cut(line, " ")
		require.Equal(t, texts[k], text)
		require.Equal(t, want, fmt.Sprintf("%08x", words[k]), text)
	}
}

// TestOperationsAreEmitted: the code that lowers or places instructions names each operation.
func TestOperationsAreEmitted(t *testing.T) {
	names := regexp.MustCompile(`(?m)^\t(\w+)$`)
	table, err := os.ReadFile("opcodes.go")
	require.NoError(t, err)
	list, _, _ := strings.Cut(string(table), "numOpcodes\n")
	var source strings.Builder
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, f := range files {
		if f != "opcodes.go" && !strings.HasSuffix(f, "_test.go") {
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			source.Write(b)
		}
	}
	all := names.FindAllStringSubmatch(list, -1)
	require.Greater(t, len(all), 200)
	for _, m := range all {
		require.Regexp(t, `\b`+m[1]+`\b`, source.String(), "nothing emits %s", m[1])
	}
}

// assembled returns lines with the words that GNU as makes of texts.
func assembled(t *testing.T, texts []string) string {
	dir := t.TempDir()
	source, object := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.o")
	require.NoError(t, os.WriteFile(source, []byte(strings.Join(texts, "\n")+"\n"), 0o644))
	as := exec.Command("aarch64-linux-gnu-as", "-march=armv8.6-a+fp16fml", "-o", object, source)
	out, err := as.CombinedOutput()
	require.NoError(t, err, string(out))
	raw := filepath.Join(dir, "a.bin")
	out, err = exec.Command("aarch64-linux-gnu-objcopy", "-O", "binary", object, raw).CombinedOutput()
	require.NoError(t, err, string(out))
	b, err := os.ReadFile(raw)
	require.NoError(t, err)
	require.Len(t, b, 4*len(texts), hex.EncodeToString(b[:min(16, len(b))]))
	var lines bytes.Buffer
	for k, text := range texts {
		fmt.Fprintf(&lines, "%08x %s\n", binary.LittleEndian.Uint32(b[4*k:]), text)
	}
	return lines.String()
}
