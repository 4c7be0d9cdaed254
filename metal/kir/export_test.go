package kir

// What tests outside of the package use.
const (
	NumOps   = numOps
	NumTypes = numTypes
)

var ConstText = constText
