package arm64

import "golang.org/x/sys/unix"

// Where the kernel's auxiliary vector has the processor's extensions, and their bits.
const (
	atHWCap, atHWCap2 = 16, 26
	capASIMDHP        = 1 << 10 // of AT_HWCAP: FEAT_FP16 for vectors
	capASIMDFHM       = 1 << 23
	cap2BF16          = 1 << 14 // of AT_HWCAP2
)

func detect() features {
	words, err := unix.Auxv()
	if err != nil {
		return features{}
	}
	return ofAuxv(words)
}

// ofAuxv reads an auxiliary vector.
func ofAuxv(words [][2]uintptr) features {
	var caps, caps2 uintptr
	for _, w := range words {
		switch w[0] {
		case atHWCap:
			caps = w[1]
		case atHWCap2:
			caps2 = w[1]
		}
	}
	return features{fp16: caps&capASIMDHP != 0, fhm: caps&capASIMDFHM != 0, bf16: caps2&cap2BF16 != 0}
}
