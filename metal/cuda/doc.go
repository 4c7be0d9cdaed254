// Package cuda is the driver of NVIDIA's GPUs. MSL text becomes kir (metal/front), kir is printed as PTX (metal/ptx),
// and libcuda, which comes with NVIDIA's driver, compiles that. Nothing else is required.
//
// The driver's logic stands on an interface, api, which library_linux.go implements by purego where the program was
// built with the tag syslibs. The tests have another one, a card that executes texts on the machine of metal/ptx.
package cuda
