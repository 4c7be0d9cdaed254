package kit

import "encoding/binary"

// Numbers lists numbers of 64 bits and then of 32 as a kernel's constants.
func Numbers(long []int, short ...int) []byte {
	b := make([]byte, 0, 8*len(long)+4*len(short))
	for _, v := range long {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range short {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}
