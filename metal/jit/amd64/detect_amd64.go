package amd64

// cpuid executes CPUID.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// xgetbv returns the low half of XCR0: the register states that the operating system saves.
func xgetbv() uint32

// Bits of CPUID and of XCR0.
const (
	leaf1ECX   = 1<<12 | 1<<20 | 1<<22 | 1<<23 | 1<<27 | 1<<28 | 1<<29 // FMA SSE4.2 MOVBE POPCNT OSXSAVE AVX F16C
	leaf7EBX   = 1<<3 | 1<<5 | 1<<8                                    // BMI1 AVX2 BMI2
	leaf7EBX4  = 1<<16 | 1<<17 | 1<<28 | 1<<30 | 1<<31                 // AVX512F DQ CD BW VL
	leaf7EAX1  = 1 << 5                                                // AVX512_BF16, of subleaf 1
	leafExtECX = 1 << 5                                                // LZCNT
	stateAVX   = 1<<1 | 1<<2                                           // xmm, ymm
	state512   = stateAVX | 1<<5 | 1<<6 | 1<<7                         // k, zmm, zmm16 to zmm31
)

func detect() Level {
	top, _, _, _ := cpuid(0, 0)
	ext, _, _, _ := cpuid(0x80000000, 0)
	if top < 7 || ext < 0x80000001 {
		return NoLevel
	}
	_, _, c1, _ := cpuid(1, 0)
	_, _, cx, _ := cpuid(0x80000001, 0)
	if c1&leaf1ECX != leaf1ECX || cx&leafExtECX == 0 {
		return NoLevel
	}
	subleaves, b7, _, _ := cpuid(7, 0)
	state := xgetbv()
	switch {
	case b7&leaf7EBX != leaf7EBX || state&stateAVX != stateAVX:
		return NoLevel
	case b7&leaf7EBX4 != leaf7EBX4 || state&state512 != state512:
		return AVX2
	}
	if subleaves >= 1 {
		if a, _, _, _ := cpuid(7, 1); a&leaf7EAX1 != 0 {
			return AVX512BF16
		}
	}
	return AVX512
}
