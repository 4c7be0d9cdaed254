// Package objc is what the driver of Apple's GPUs needs of Objective-C: messages as data, the table of those that the
// driver sends, where the arguments of a call go on each processor, and a runtime, which is Apple's on macOS. The tests
// of the driver have another runtime, metal/apple/fake, on every system.
package objc
