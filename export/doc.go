// Package export writes functions over arrays to files, and reads them: mx.export_function and mx.import_function. What
// is written is what package compile recorded of calls of the function: ops by name with their attributes, and the
// arrays that are constants.
//
// A file has, in this order:
//
//	magic        8 bytes
//	version      uint32, little-endian
//	zeros        up to the next multiple of 64 bytes
//	constants    each one's elements in row-major order, and zeros up to the next multiple of 64 bytes
//	description  constants' specs and checksums, ops, and one trace for each call that was exported
//	footer       the description's length (uint64) and CRC-32C (uint32), little-endian, and the magic again
//
// The description is a sequence of varints and texts; write.go writes it and read.go reads it. An op stands there with
// a description of its attributes, so that a program whose op has other ones refuses the file. What can change what a
// file means changes version.
package export

// version is the version of files that this package writes and reads.
const version = 1

const (
	magic      = "mlxluafn"
	alignment  = 64
	headerSize = len(magic) + 4
	footerSize = 8 + 4 + len(magic)
)

// mostOutputs bounds how many outputs the calls of a trace have altogether.
const mostOutputs = 1 << 22
