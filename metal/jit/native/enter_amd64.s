//go:build linux || darwin || windows

#include "textflag.h"
#include "funcdata.h"

// func enter(entry, block uintptr)
// The frame is there so that the assembler saves and restores RBP.
TEXT ·enter(SB), 0, $8-16
	NO_LOCAL_POINTERS
	MOVQ entry+0(FP), AX
	MOVQ block+8(FP), BP
	CALL AX
	RET
