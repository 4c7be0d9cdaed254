package arm64

import "golang.org/x/sys/unix"

// detect asks the system, which tells of nothing that it has no name for. macOS 11 had other names; all processors
// that it runs on have the first two.
func detect() features {
	has := func(names ...string) bool {
		for _, name := range names {
			if n, err := unix.SysctlUint32("hw.optional." + name); err == nil && n != 0 {
				return true
			}
		}
		return false
	}
	return features{fp16: has("arm.FEAT_FP16", "neon_fp16"), fhm: has("arm.FEAT_FHM", "armv8_2_fhm"),
		bf16: has("arm.FEAT_BF16")}
}
