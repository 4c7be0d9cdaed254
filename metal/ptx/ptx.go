package ptx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
)

// versions is the oldest PTX version that knows each target: an older driver takes an older version.
var versions = map[int]string{75: "6.3", 80: "7.0", 86: "7.1", 89: "7.8", 90: "7.8", 100: "8.6", 120: "8.7"}

// Targets returns the compute capabilities that texts can be printed for, times ten, in ascending order. A card runs
// the texts of those up to its own.
func Targets() []int { return []int{75, 80, 86, 89, 90, 100, 120} }

// Options says what a text is printed for.
type Options struct {
	// SM is the target, one of Targets.
	SM int
	// MaxThreads is the largest threadgroup it is launched with, 0: what the kernel allows, or 1024. Fewer threads may
	// have more registers.
	MaxThreads int
	// Align is the alignment of the address that each Param is bound at, by Param: a power of two. Accesses that are
	// known to be aligned take one instruction. nil: all are multiples of 16. A launch whose addresses are less aligned
	// needs another text.
	Align []int
	// Inline is how many bytes of each Param travel with the launch, by Param, 0: it is a buffer. nil: all are. Only
	// Constant Params whose accesses name them can be inline: see Layout.Objects for which are.
	Inline []int
	// Ends promises that the kernel ends: its threads do not ask whether to stop.
	Ends bool
}

// Text is a printed kernel.
type Text struct {
	Entry  string // its name in the text
	Layout Layout
	// Sites are the accesses that may fault, by the number that a Fault has.
	Sites []*kir.Instr
	// Asks says that threads ask whether to stop.
	Asks bool

	options Options
	lines   []line
}

type line struct {
	text string
	pos  kir.Pos
}

// ErrFloat64 is why a kernel that computes in float64 is refused.
var ErrFloat64 = errors.New("float64 is not computed on this device")

// ErrWaits is why a kernel is refused whose threadgroups wait for each other: a GPU promises no threadgroup that
// another one runs beside it.
var ErrWaits = errors.New("threadgroups that wait for each other cannot run on this device")

// Print prints a kernel, which it verifies first and does not change: what it prints is what the optimiser makes of it.
func Print(k *kir.Kernel, options Options) (*Text, error) {
	if err := k.Verify(); err != nil {
		return nil, err
	}
	if k.Refused != nil {
		return nil, k.Refused
	}
	if err := options.check(k); err != nil {
		return nil, err
	}
	if in := usesFloat64(k); in != nil {
		return nil, refusal(k, in, ErrFloat64)
	}
	k = opt.Run(k, opt.Launch{})
	opt.Gather(k)
	p := newPrinter(k, options)
	if in := p.flow.waitsForOthers(); in != nil {
		return nil, refusal(k, in, ErrWaits)
	}
	p.kernel()
	if p.err != nil {
		return nil, p.err
	}
	return &Text{Entry: p.entry, Layout: p.layout, Sites: p.sites, Asks: p.polls, options: options,
		lines: p.assemble()}, nil
}

func refusal(k *kir.Kernel, in *kir.Instr, why error) error {
	return fmt.Errorf("[%s] %w: %s in line %d", k.Name, why, in.Op, in.Pos.Line)
}

func (o Options) check(k *kir.Kernel) error {
	if versions[o.SM] == "" {
		return fmt.Errorf("[%s] there is no target sm_%d: %v", k.Name, o.SM, Targets())
	}
	if o.MaxThreads < 0 || o.MaxThreads > maxThreads {
		return fmt.Errorf("[%s] threadgroups of %d threads: the limit is %d", k.Name, o.MaxThreads, maxThreads)
	}
	if o.Align != nil && len(o.Align) != len(k.Params) || o.Inline != nil && len(o.Inline) != len(k.Params) {
		return fmt.Errorf("[%s] %d alignments and %d inline sizes for %d parameters", k.Name, len(o.Align), len(o.Inline),
			len(k.Params))
	}
	for i, a := range o.Align {
		if a <= 0 || a&(a-1) != 0 {
			return fmt.Errorf("[%s] parameter %q: alignment %d is no power of two", k.Name, k.Params[i].Name, a)
		}
	}
	for i, n := range o.Inline {
		if n < 0 {
			return fmt.Errorf("[%s] parameter %q: %d inline bytes", k.Name, k.Params[i].Name, n)
		}
	}
	return nil
}

// usesFloat64 returns an instruction that has to do with F64, nil if there is none.
func usesFloat64(k *kir.Kernel) (found *kir.Instr) {
	k.Body.Walk(func(in *kir.Instr) {
		uses := in.Type == kir.F64
		for _, a := range in.Args {
			uses = uses || a.Type == kir.F64
		}
		if uses && found == nil {
			found = in
		}
	})
	return found
}

// String returns the text as a module of its own.
func (t *Text) String() string {
	s, _ := Module(t)
	return s
}

// Place returns where a line of String comes from, for the messages of the driver's compiler; the zero Pos if nowhere.
func (t *Text) Place(number int) kir.Pos {
	if i := number - 1 - headLines; i >= 0 && i < len(t.lines) {
		return t.lines[i].pos
	}
	return kir.Pos{}
}

// headLines is how many lines of a module come before its first kernel.
const headLines = 4

// Module joins texts of one target into one module: compiling has a price for each module. Their Entry names must
// differ.
func Module(texts ...*Text) (string, error) {
	var b strings.Builder
	seen := map[string]bool{}
	for i, t := range texts {
		if i == 0 {
			fmt.Fprintf(&b, ".version %s\n.target sm_%d\n.address_size 64\n", versions[t.options.SM], t.options.SM)
			fmt.Fprintf(&b, ".extern .shared .align 16 .b8 %s[];\n", sharedName)
		}
		if t.options.SM != texts[0].options.SM {
			return "", fmt.Errorf("[%s] printed for sm_%d, not for sm_%d", t.Entry, t.options.SM, texts[0].options.SM)
		}
		if seen[t.Entry] {
			return "", fmt.Errorf("[%s] two kernels of a module have this name", t.Entry)
		}
		seen[t.Entry] = true
		for _, l := range t.lines {
			b.WriteString(l.text)
			b.WriteByte('\n')
		}
	}
	return b.String(), nil
}

// mangle makes a name of PTX of a kernel's: letters, digits and _, the first a letter.
func mangle(name string) string {
	var b strings.Builder
	b.WriteString("k_")
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			b.WriteByte(c)
		case c == '_':
			b.WriteString("__")
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}
