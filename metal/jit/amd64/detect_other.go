//go:build !amd64

package amd64

func detect() Level { return NoLevel }
