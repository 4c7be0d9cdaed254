package kir

// Bytes is about what the kernel takes in memory, and rather more than less.
func (k *Kernel) Bytes() int64 {
	const (
		kernel, instr = 512, 144
		declared      = 128 // of a parameter, variable or region
	)
	n := kernel + instr*k.NumInstrs + declared*(len(k.Params)+len(k.Vars)+len(k.Regions))
	for i := range k.Regions {
		n += len(k.Regions[i].Data)
	}
	return int64(n)
}
