#include "textflag.h"

// func Pause()
// YIELD takes no time on most of these processors.
TEXT ·Pause(SB), NOSPLIT, $0-0
	ISB $15
	RET
