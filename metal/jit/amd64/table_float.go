package amd64

// floats are the rows of arithmetic, comparisons and conversions on floating-point lanes.
var floats = [...]row{
	VAddPS:  {"vaddps", formRVM, 0x58, 0, 0, ps | comm},
	VAddPD:  {"vaddpd", formRVM, 0x58, 0, 0, pd | comm},
	VAddSS:  {"vaddss", formRVM, 0x58, 0, 0, ss},
	VMulPS:  {"vmulps", formRVM, 0x59, 0, 0, ps | comm},
	VMulPD:  {"vmulpd", formRVM, 0x59, 0, 0, pd | comm},
	VSubPS:  {"vsubps", formRVM, 0x5c, 0, 0, ps},
	VSubPD:  {"vsubpd", formRVM, 0x5c, 0, 0, pd},
	VSubSS:  {"vsubss", formRVM, 0x5c, 0, 0, ss},
	VMinPS:  {"vminps", formRVM, 0x5d, 0, 0, ps},
	VMinPD:  {"vminpd", formRVM, 0x5d, 0, 0, pd},
	VDivPS:  {"vdivps", formRVM, 0x5e, 0, 0, ps},
	VDivPD:  {"vdivpd", formRVM, 0x5e, 0, 0, pd},
	VMaxPS:  {"vmaxps", formRVM, 0x5f, 0, 0, ps},
	VMaxPD:  {"vmaxpd", formRVM, 0x5f, 0, 0, pd},
	VSqrtPS: {"vsqrtps", formRM, 0x51, 0, 0, ps},
	VSqrtPD: {"vsqrtpd", formRM, 0x51, 0, 0, pd},

	VXorPS: {"vxorps", formRVM, 0x57, 0, 0, ps | comm},

	// Fused multiply and add. 132: Dst*B+A, 213: A*Dst+B, 231: A*B+Dst.
	VFMAdd132PS:  {"vfmadd132ps", formTVM, 0x98, 0, 0, i38},
	VFMAdd132PD:  {"vfmadd132pd", formTVM, 0x98, 0, 0, q38 | vw1},
	VFMAdd213PS:  {"vfmadd213ps", formTVM, 0xa8, 0, 0, i38},
	VFMAdd213PD:  {"vfmadd213pd", formTVM, 0xa8, 0, 0, q38 | vw1},
	VFMAdd231PS:  {"vfmadd231ps", formTVM, 0xb8, 0, 0, i38 | comm},
	VFMAdd231PD:  {"vfmadd231pd", formTVM, 0xb8, 0, 0, q38 | vw1 | comm},
	VFMSub132PD:  {"vfmsub132pd", formTVM, 0x9a, 0, 0, q38 | vw1},
	VFMSub213PD:  {"vfmsub213pd", formTVM, 0xaa, 0, 0, q38 | vw1},
	VFNMAdd231PS: {"vfnmadd231ps", formTVM, 0xbc, 0, 0, i38 | comm},
	VFNMAdd231PD: {"vfnmadd231pd", formTVM, 0xbc, 0, 0, q38 | vw1 | comm},
	VDPBF16PS:    {"vdpbf16ps", formTVM, 0x52, 0, 0, m38 | pF3 | evexOnly},

	// Comparisons: to vectors (predicates 0 to 31 in Imm), to masks (names with K), to the flags.
	VCmpPS:  {"vcmpps", formRVMI, 0xc2, 0, 0, ps | vexOnly | fvm},
	VCmpPD:  {"vcmppd", formRVMI, 0xc2, 0, 0, pd | vexOnly | fvm},
	VCmpPSK: {"vcmpps", formRVMI, 0xc2, 0, 0, ps | kd},
	VCmpPDK: {"vcmppd", formRVMI, 0xc2, 0, 0, pd | kd},

	// Rounding: Imm is the mode, plus 8 for no inexact exception.
	VRoundPS:    {"vroundps", formRMI, 0x08, 0, 0, i3A | vexOnly | fvm},
	VRoundPD:    {"vroundpd", formRMI, 0x09, 0, 0, i3A | vexOnly | fvm},
	VRndScalePS: {"vrndscaleps", formRMI, 0x08, 0, 0, i3A | evexOnly},
	VRndScalePD: {"vrndscalepd", formRMI, 0x09, 0, 0, q3A | evexOnly},
	VRangePS:    {"vrangeps", formRVMI, 0x50, 0, 0, i3A | evexOnly},
	VRangePD:    {"vrangepd", formRVMI, 0x50, 0, 0, q3A | evexOnly},
	VScaleFPS:   {"vscalefps", formRVM, 0x2c, 0, 0, i38 | evexOnly},
	VScaleFPD:   {"vscalefpd", formRVM, 0x2c, 0, 0, q38 | evexOnly},

	// Conversions between lanes. W is the width of the wider operand.
	VCvtDQ2PS:   {"vcvtdq2ps", formRM, 0x5b, 0, 0, ps},
	VCvtTPS2DQ:  {"vcvttps2dq", formRM, 0x5b, 0, 0, m0F | pF3},
	VCvtUDQ2PS:  {"vcvtudq2ps", formRM, 0x7a, 0, 0, m0F | pF2 | evexOnly},
	VCvtTPS2UDQ: {"vcvttps2udq", formRM, 0x78, 0, 0, m0F | evexOnly},
	VCvtDQ2PD:   {"vcvtdq2pd", formRM, 0xe6, 0, 0, m0F | pF3 | hv},
	VCvtUDQ2PD:  {"vcvtudq2pd", formRM, 0x7a, 0, 0, m0F | pF3 | hv | evexOnly},
	VCvtTPD2DQ:  {"vcvttpd2dq", formRM, 0xe6, 0, 0, pd | dHalf},
	VCvtTPD2UDQ: {"vcvttpd2udq", formRM, 0x78, 0, 0, m0F | w1 | dHalf | evexOnly},
	VCvtPS2PD:   {"vcvtps2pd", formRM, 0x5a, 0, 0, m0F | hv},
	VCvtPD2PS:   {"vcvtpd2ps", formRM, 0x5a, 0, 0, pd | dHalf},
	VCvtQQ2PS:   {"vcvtqq2ps", formRM, 0x5b, 0, 0, m0F | w1 | dHalf | evexOnly},
	VCvtUQQ2PS:  {"vcvtuqq2ps", formRM, 0x7a, 0, 0, m0F | pF2 | w1 | dHalf | evexOnly},
	VCvtQQ2PD:   {"vcvtqq2pd", formRM, 0xe6, 0, 0, m0F | pF3 | w1 | evexOnly},
	VCvtUQQ2PD:  {"vcvtuqq2pd", formRM, 0x7a, 0, 0, m0F | pF3 | w1 | evexOnly},
	VCvtTPD2QQ:  {"vcvttpd2qq", formRM, 0x7a, 0, 0, pd | evexOnly},
	VCvtTPD2UQQ: {"vcvttpd2uqq", formRM, 0x78, 0, 0, pd | evexOnly},
	VCvtPH2PS:   {"vcvtph2ps", formRM, 0x13, 0, 0, i38 | hvm},
	VCvtPS2PH:   {"vcvtps2ph", formMRI, 0x1d, 0, 0, i3A | hvm},

	// Conversions of one number. W is the size of the general operand.
}
