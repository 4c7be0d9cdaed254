package native

// Return is the code that does nothing but return.
var Return = []byte{0xc3}
