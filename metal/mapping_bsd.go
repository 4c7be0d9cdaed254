//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package metal

// noReserve is a flag that Linux alone needs.
const noReserve = 0
