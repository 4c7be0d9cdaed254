package metal

import "syscall"

// noReserve asks the system to promise no memory for the pages of a mapping that might be written.
const noReserve = syscall.MAP_NORESERVE
