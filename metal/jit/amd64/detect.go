package amd64

// Level is an instruction set level.
type Level uint8

// The levels. AVX2 stands for x86-64-v3 (AVX2, FMA, F16C, BMI1 and 2, LZCNT, MOVBE), AVX512 for x86-64-v4
// (AVX-512 F, BW, CD, DQ, VL), AVX512BF16 for that and AVX-512 BF16.
const (
	NoLevel Level = iota
	AVX2
	AVX512
	AVX512BF16
)

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case AVX2:
		return "AVX2"
	case AVX512:
		return "AVX-512"
	case AVX512BF16:
		return "AVX-512 BF16"
	}
	return "none"
}

// Detect returns the highest level that this processor and the operating system support, NoLevel on other
// processors.
func Detect() Level { return detect() }
