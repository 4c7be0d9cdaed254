package metal

// Capturer is the capability of drivers whose system records what the device is given, for tools of its own.
type Capturer interface {
	// StartCapture begins a capture that goes to a path, where nothing is yet.
	StartCapture(path string) error
	// StopCapture ends it, and writes it.
	StopCapture() error
}
