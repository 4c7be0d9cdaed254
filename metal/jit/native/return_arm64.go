package native

// Return is the code that does nothing but return.
var Return = []byte{0xc0, 0x03, 0x5f, 0xd6}
