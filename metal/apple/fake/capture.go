package fake

import "github.com/mlxlua/mlxlua/metal/apple/objc"

// captureOrder is MTLCaptureDescriptor.
type captureOrder struct {
	object      uint64
	destination int64
	url         string
}

// Captured is where the last capture went, "" while there is none.
func (r *Runtime) Captured() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.captured
}

// performCapture does what a message of a capture's says. Called with mu held.
func (r *Runtime) performCapture(o *object, m *objc.Message) uint64 {
	a := m.Args
	switch m.Sel {
	case objc.FileURLWithPath:
		s := r.string(&a[0])
		return uint64(r.autorelease(r.make("NSURL", &s)))
	case objc.SharedCaptureManager:
		for _, x := range r.objects {
			if x.class == "MTLCaptureManager" {
				return uint64(x.id)
			}
		}
		return uint64(r.make("MTLCaptureManager", nil).id)
	case objc.SupportsDestination:
		return truth(r.machine.Capture)
	case objc.SetCaptureObject:
		o.is.(*captureOrder).object = a[0].Words[0]
	case objc.SetDestination:
		o.is.(*captureOrder).destination = int64(a[0].Words[0])
	case objc.SetOutputURL:
		o.is.(*captureOrder).url = r.string(&a[0])
	case objc.StartCapture:
		const document = 2
		x := r.find(objc.Object(a[0].Words[0]), "a capture").is.(*captureOrder)
		if x.object != uint64(r.device.id) || x.destination != document || x.url == "" || r.captured != "" {
			return r.fails(&a[1], 3, "Invalid descriptor")
		}
		r.captured = x.url
		return 1
	case objc.StopCapture:
		r.captured = ""
	}
	return 0
}
