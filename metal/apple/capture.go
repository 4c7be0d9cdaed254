package apple

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// captureDocument is Metal's number of a capture that goes into a file.
const captureDocument = 2

// StartCapture has Metal record what the GPU is given, into a folder for Xcode that does not exist yet.
func (d *Driver) StartCapture(path string) error {
	return d.call(func(c *objc.Caller) error {
		manager := c.Object(d.rt.Class("MTLCaptureManager"), objc.SharedCaptureManager)
		if !c.Is(manager, objc.SupportsDestination, objc.Signed(captureDocument)) {
			return errors.New("[metal] Metal captures only in programs that are started with MTL_CAPTURE_ENABLED=1")
		}
		whole, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(whole); err == nil {
			return fmt.Errorf("[metal] %s exists", path)
		}
		text, order := c.String(whole), c.New("MTLCaptureDescriptor")
		defer c.Release(text, order)
		c.Send(order, objc.SetCaptureObject, objc.Obj(d.device))
		c.Send(order, objc.SetDestination, objc.Signed(captureDocument))
		url := c.Object(d.rt.Class("NSURL"), objc.FileURLWithPath, objc.Obj(text))
		c.Send(order, objc.SetOutputURL, objc.Obj(url))
		var problem objc.Object
		if !c.Is(manager, objc.StartCapture, objc.Obj(order), objc.Out(&problem)) {
			return fmt.Errorf("[metal] no capture: %s", c.Text(c.Object(problem, objc.LocalizedDescription)))
		}
		d.capturing.Store(true)
		return nil
	})
}

// StopCapture ends what StartCapture began, and writes it.
func (d *Driver) StopCapture() error {
	return d.call(func(c *objc.Caller) error {
		if !d.capturing.Swap(false) {
			return errors.New("[metal] no capture is under way")
		}
		c.Send(c.Object(d.rt.Class("MTLCaptureManager"), objc.SharedCaptureManager), objc.StopCapture)
		return nil
	})
}
