//go:build !linux && !darwin

package arm64

func detect() features { return features{} }
