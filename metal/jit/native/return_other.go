//go:build !amd64 && !arm64

package native

// Return is nothing: there is no machine code here.
var Return []byte
