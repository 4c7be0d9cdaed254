//go:build linux || darwin

#include "textflag.h"
#include "funcdata.h"

// func enter(entry, block uintptr)
// The frame is there so that the assembler saves and restores the link register.
TEXT ·enter(SB), 0, $16-16
	NO_LOCAL_POINTERS
	MOVD entry+0(FP), R0
	MOVD block+8(FP), R20
	BL (R0)
	RET

// func flush(from, to uintptr)
// Lines of caches have 16 bytes at least.
TEXT ·flush(SB), NOSPLIT, $0-16
	MOVD from+0(FP), R0
	MOVD to+8(FP), R1
	MOVD R0, R2
clean:
	DC CVAU, R2
	ADD $16, R2
	CMP R1, R2
	BLO clean
	DSB $11
	MOVD R0, R2
drop:
	WORD $0xd50b7522 // IC IVAU, R2
	ADD $16, R2
	CMP R1, R2
	BLO drop
	DSB $11
	ISB $15
	RET
