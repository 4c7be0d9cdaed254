package amd64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// floats are the rows of arithmetic, comparisons and conversions on floating-point lanes.
var floats = [...]row{
	code.VAddPS:  {"vaddps", formRVM, 0x58, 0, 0, ps | comm},
	code.VAddPD:  {"vaddpd", formRVM, 0x58, 0, 0, pd | comm},
	code.VAddSS:  {"vaddss", formRVM, 0x58, 0, 0, ss},
	code.VMulPS:  {"vmulps", formRVM, 0x59, 0, 0, ps | comm},
	code.VMulPD:  {"vmulpd", formRVM, 0x59, 0, 0, pd | comm},
	code.VSubPS:  {"vsubps", formRVM, 0x5c, 0, 0, ps},
	code.VSubPD:  {"vsubpd", formRVM, 0x5c, 0, 0, pd},
	code.VSubSS:  {"vsubss", formRVM, 0x5c, 0, 0, ss},
	code.VMinPS:  {"vminps", formRVM, 0x5d, 0, 0, ps},
	code.VMinPD:  {"vminpd", formRVM, 0x5d, 0, 0, pd},
	code.VDivPS:  {"vdivps", formRVM, 0x5e, 0, 0, ps},
	code.VDivPD:  {"vdivpd", formRVM, 0x5e, 0, 0, pd},
	code.VMaxPS:  {"vmaxps", formRVM, 0x5f, 0, 0, ps},
	code.VMaxPD:  {"vmaxpd", formRVM, 0x5f, 0, 0, pd},
	code.VSqrtPS: {"vsqrtps", formRM, 0x51, 0, 0, ps},
	code.VSqrtPD: {"vsqrtpd", formRM, 0x51, 0, 0, pd},

	code.VXorPS: {"vxorps", formRVM, 0x57, 0, 0, ps | comm},

	// Fused multiply and add. 132: Dst*B+A, 213: A*Dst+B, 231: A*B+Dst.
	code.VFMAdd132PS:  {"vfmadd132ps", formTVM, 0x98, 0, 0, i38},
	code.VFMAdd132PD:  {"vfmadd132pd", formTVM, 0x98, 0, 0, q38 | vw1},
	code.VFMAdd213PS:  {"vfmadd213ps", formTVM, 0xa8, 0, 0, i38},
	code.VFMAdd213PD:  {"vfmadd213pd", formTVM, 0xa8, 0, 0, q38 | vw1},
	code.VFMAdd231PS:  {"vfmadd231ps", formTVM, 0xb8, 0, 0, i38 | comm},
	code.VFMAdd231PD:  {"vfmadd231pd", formTVM, 0xb8, 0, 0, q38 | vw1 | comm},
	code.VFMSub132PD:  {"vfmsub132pd", formTVM, 0x9a, 0, 0, q38 | vw1},
	code.VFMSub213PD:  {"vfmsub213pd", formTVM, 0xaa, 0, 0, q38 | vw1},
	code.VFNMAdd231PS: {"vfnmadd231ps", formTVM, 0xbc, 0, 0, i38 | comm},
	code.VFNMAdd231PD: {"vfnmadd231pd", formTVM, 0xbc, 0, 0, q38 | vw1 | comm},
	code.VDPBF16PS:    {"vdpbf16ps", formTVM, 0x52, 0, 0, m38 | pF3 | evexOnly},

	// Comparisons: to vectors (predicates 0 to 31 in Imm), to masks (names with K), to the flags.
	code.VCmpPS:  {"vcmpps", formRVMI, 0xc2, 0, 0, ps | vexOnly | fvm},
	code.VCmpPD:  {"vcmppd", formRVMI, 0xc2, 0, 0, pd | vexOnly | fvm},
	code.VCmpPSK: {"vcmpps", formRVMI, 0xc2, 0, 0, ps | kd},
	code.VCmpPDK: {"vcmppd", formRVMI, 0xc2, 0, 0, pd | kd},

	// Rounding: Imm is the mode, plus 8 for no inexact exception.
	code.VRoundPS:    {"vroundps", formRMI, 0x08, 0, 0, i3A | vexOnly | fvm},
	code.VRoundPD:    {"vroundpd", formRMI, 0x09, 0, 0, i3A | vexOnly | fvm},
	code.VRndScalePS: {"vrndscaleps", formRMI, 0x08, 0, 0, i3A | evexOnly},
	code.VRndScalePD: {"vrndscalepd", formRMI, 0x09, 0, 0, q3A | evexOnly},
	code.VRangePS:    {"vrangeps", formRVMI, 0x50, 0, 0, i3A | evexOnly},
	code.VRangePD:    {"vrangepd", formRVMI, 0x50, 0, 0, q3A | evexOnly},
	code.VScaleFPS:   {"vscalefps", formRVM, 0x2c, 0, 0, i38 | evexOnly},
	code.VScaleFPD:   {"vscalefpd", formRVM, 0x2c, 0, 0, q38 | evexOnly},

	// Conversions between lanes. W is the width of the wider operand.
	code.VCvtDQ2PS:     {"vcvtdq2ps", formRM, 0x5b, 0, 0, ps},
	code.VCvtTPS2DQ:    {"vcvttps2dq", formRM, 0x5b, 0, 0, m0F | pF3},
	code.VCvtUDQ2PS:    {"vcvtudq2ps", formRM, 0x7a, 0, 0, m0F | pF2 | evexOnly},
	code.VCvtTPS2UDQ:   {"vcvttps2udq", formRM, 0x78, 0, 0, m0F | evexOnly},
	code.VCvtDQ2PD:     {"vcvtdq2pd", formRM, 0xe6, 0, 0, m0F | pF3 | hv},
	code.VCvtUDQ2PD:    {"vcvtudq2pd", formRM, 0x7a, 0, 0, m0F | pF3 | hv | evexOnly},
	code.VCvtTPD2DQ:    {"vcvttpd2dq", formRM, 0xe6, 0, 0, pd | dHalf},
	code.VCvtTPD2UDQ:   {"vcvttpd2udq", formRM, 0x78, 0, 0, m0F | w1 | dHalf | evexOnly},
	code.VCvtPS2PD:     {"vcvtps2pd", formRM, 0x5a, 0, 0, m0F | hv},
	code.VCvtPD2PS:     {"vcvtpd2ps", formRM, 0x5a, 0, 0, pd | dHalf},
	code.VCvtQQ2PS:     {"vcvtqq2ps", formRM, 0x5b, 0, 0, m0F | w1 | dHalf | evexOnly},
	code.VCvtUQQ2PS:    {"vcvtuqq2ps", formRM, 0x7a, 0, 0, m0F | pF2 | w1 | dHalf | evexOnly},
	code.VCvtQQ2PD:     {"vcvtqq2pd", formRM, 0xe6, 0, 0, m0F | pF3 | w1 | evexOnly},
	code.VCvtUQQ2PD:    {"vcvtuqq2pd", formRM, 0x7a, 0, 0, m0F | pF3 | w1 | evexOnly},
	code.VCvtTPD2QQ:    {"vcvttpd2qq", formRM, 0x7a, 0, 0, pd | evexOnly},
	code.VCvtTPD2UQQ:   {"vcvttpd2uqq", formRM, 0x78, 0, 0, pd | evexOnly},
	code.VCvtPH2PS:     {"vcvtph2ps", formRM, 0x13, 0, 0, i38 | hvm},
	code.VCvtPS2PH:     {"vcvtps2ph", formMRI, 0x1d, 0, 0, i3A | hvm},
	code.VCvtNEPS2BF16: {"vcvtneps2bf16", formRM, 0x72, 0, 0, m38 | pF3 | dHalf | evexOnly},
}
