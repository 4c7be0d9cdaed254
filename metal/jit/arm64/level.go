package arm64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// Level is an instruction set level. Each has what those before it have.
type Level uint8

// The levels, by the names that Arm gives the extensions of Armv8.2 and later.
const (
	NEON    Level = iota + 1 // of every arm64 processor
	FP16                     // FEAT_FP16: arithmetic on lanes of 16 bits
	FP16FML                  // FEAT_FHM: products of halves added to floats
	BF16                     // FEAT_BF16: rounding to bfloat16
)

// best is the highest of them.
const best = BF16

// String returns the level's name.
func (l Level) String() string {
	return [...]string{"none", "NEON", "NEON FP16", "NEON FP16FML", "NEON BF16"}[l]
}

// targets are the processors of the levels.
var targets = func() (t [best + 1]code.Target) {
	for l := NEON; l <= best; l++ {
		t[l] = code.Target{Name: l.String(), VecBytes: vecBytes, Group: 16, Straight: 24, Registers: 12, Extras: true,
			RoundsBF16: l >= BF16, Finish: finish(l)}
	}
	return t
}()

// Target returns the processors of a level.
func Target(l Level) *code.Target { return &targets[l] }

// features are the extensions that make levels, as the system tells of them.
type features struct{ fp16, fhm, bf16 bool }

// level is what a processor with them has: as far as none before is missing.
func (f features) level() Level {
	switch {
	case !f.fp16:
		return NEON
	case !f.fhm:
		return FP16
	case !f.bf16:
		return FP16FML
	}
	return BF16
}

// Detect returns the highest level that this processor and its system support. It is for arm64 only.
func Detect() Level { return detect().level() }
