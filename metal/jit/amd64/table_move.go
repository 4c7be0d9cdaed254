package amd64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// moves are the rows of moves, broadcasts, blends, permutations, gathers and scatters.
var moves = [...]row{
	code.VMovUPS:    {"vmovups", formMov, 0x10, 0x11, 0, ps | fvm},
	code.VMovAPS:    {"vmovaps", formMov, 0x28, 0x29, 0, ps | fvm},
	code.VMovAPD:    {"vmovapd", formMov, 0x28, 0x29, 0, pd | fvm},
	code.VMovDQU:    {"vmovdqu", formMov, 0x6f, 0x7f, 0, m0F | pF3 | vexOnly | fvm},
	code.VMovDQU8:   {"vmovdqu8", formMov, 0x6f, 0x7f, 0, m0F | pF2 | evexOnly | fvm},
	code.VMovDQU64:  {"vmovdqu64", formMov, 0x6f, 0x7f, 0, m0F | pF3 | w1 | evexOnly | fvm},
	code.VMovDQA32:  {"vmovdqa32", formMov, 0x6f, 0x7f, 0, i0F | evexOnly | fvm},
	code.VMovD:      {"vmovd", formMovDQ, 0x6e, 0x7e, 0, i0F | t4 | lig},
	code.VMovQ:      {"vmovq", formMovDQ, 0x7e, 0xd6, 0, i0F | t8 | lig | w1},
	code.VMovNTPS:   {"vmovntps", formMR, 0x2b, 0, 0, ps | fvm | memOnly | noK},
	code.VZeroUpper: {"vzeroupper", formZero, 0x77, 0, 0, m0F | vexOnly | fvm},

	// Masked moves of AVX2: A (loads) or B (stores, of A) is the mask.
	code.VPMaskMovD:   {"vpmaskmovd", formRVM, 0x8c, 0, 0, i38 | vexOnly | fvm | memOnly},
	code.VPMaskMovQ:   {"vpmaskmovq", formRVM, 0x8c, 0, 0, i38 | vw1 | vexOnly | fvm | memOnly},
	code.VPMaskMovDSt: {"vpmaskmovd", formMVR, 0x8e, 0, 0, i38 | vexOnly | fvm | memOnly},
	code.VPMaskMovQSt: {"vpmaskmovq", formMVR, 0x8e, 0, 0, i38 | vw1 | vexOnly | fvm | memOnly},

	// Broadcasts of the first element of A, or of Mem; names with G: of a general register.
	code.VBroadcastSS:  {"vbroadcastss", formRM, 0x18, 0, 0, i38 | t4},
	code.VBroadcastSD:  {"vbroadcastsd", formRM, 0x19, 0, 0, q38 | t8 | min32},
	code.VPBroadcastB:  {"vpbroadcastb", formRM, 0x78, 0, 0, i38 | t1},
	code.VPBroadcastW:  {"vpbroadcastw", formRM, 0x79, 0, 0, i38 | t2},
	code.VPBroadcastD:  {"vpbroadcastd", formRM, 0x58, 0, 0, i38 | t4},
	code.VPBroadcastQ:  {"vpbroadcastq", formRM, 0x59, 0, 0, q38 | t8},
	code.VPBroadcastGD: {"vpbroadcastd", formRM, 0x7c, 0, 0, i38 | t4 | evexOnly | aG | regOnly},
	code.VPBroadcastGQ: {"vpbroadcastq", formRM, 0x7c, 0, 0, q38 | t8 | evexOnly | aG | regOnly},

	// Blends: by a vector C, by Imm, or (AVX-512) by KM: lanes on are B's, the others A's, or zero.
	code.VBlendVPS: {"vblendvps", formRVMR, 0x4a, 0, 0, i3A | vexOnly | fvm},
	code.VBlendVPD: {"vblendvpd", formRVMR, 0x4b, 0, 0, i3A | vexOnly | fvm},
	code.VBlendPS:  {"vblendps", formRVMI, 0x0c, 0, 0, i3A | vexOnly | fvm},
	code.VPBlendD:  {"vpblendd", formRVMI, 0x02, 0, 0, i3A | vexOnly | fvm},
	code.VPBlendMD: {"vpblendmd", formRVM, 0x64, 0, 0, i38 | evexOnly | sel},
	code.VPBlendMQ: {"vpblendmq", formRVM, 0x64, 0, 0, q38 | evexOnly | sel},

	// Permutations. VPermD and VPermPS, VPermW, ...: A is the index, B the data. T2: Dst and B are the tables, A the
	// index. I2: A and B are the tables, Dst the index.
	code.VPermD:     {"vpermd", formRVM, 0x36, 0, 0, i38 | min32},
	code.VPermPS:    {"vpermps", formRVM, 0x16, 0, 0, i38 | min32},
	code.VPermQ:     {"vpermq", formRMI, 0x00, 0, 0, q3A | vw1 | min32},
	code.VPermT2PS:  {"vpermt2ps", formTVM, 0x7f, 0, 0, i38 | evexOnly},
	code.VPermI2D:   {"vpermi2d", formTVM, 0x76, 0, 0, i38 | evexOnly},
	code.VPermI2PS:  {"vpermi2ps", formTVM, 0x77, 0, 0, i38 | evexOnly},
	code.VPermilVPS: {"vpermilps", formRVM, 0x0c, 0, 0, i38},
	code.VShufPS:    {"vshufps", formRVMI, 0xc6, 0, 0, ps},
	code.VPShufB:    {"vpshufb", formRVM, 0x00, 0, 0, i38 | fvm},
	code.VPShufD:    {"vpshufd", formRMI, 0x70, 0, 0, i0F},
	code.VUnpckLPS:  {"vunpcklps", formRVM, 0x14, 0, 0, ps},
	code.VUnpckHPS:  {"vunpckhps", formRVM, 0x15, 0, 0, ps},
	code.VUnpckLPD:  {"vunpcklpd", formRVM, 0x14, 0, 0, pd},
	code.VUnpckHPD:  {"vunpckhpd", formRVM, 0x15, 0, 0, pd},
	code.VPUnpckLDQ: {"vpunpckldq", formRVM, 0x62, 0, 0, i0F},
	code.VPUnpckHDQ: {"vpunpckhdq", formRVM, 0x6a, 0, 0, i0F},
	code.VPAlignR:   {"vpalignr", formRVMI, 0x0f, 0, 0, i3A | fvm},
	code.VAlignD:    {"valignd", formRVMI, 0x03, 0, 0, i3A | evexOnly},
	code.VAlignQ:    {"valignq", formRVMI, 0x03, 0, 0, q3A | evexOnly},

	// Inserting (B into A at Imm) and extracting (of A at Imm, to Dst or Mem).
	code.VInsertF128:   {"vinsertf128", formRVMI, 0x18, 0, 0, i3A | vexOnly | m16 | min32},
	code.VInsertI128:   {"vinserti128", formRVMI, 0x38, 0, 0, i3A | vexOnly | m16 | min32},
	code.VInsertF32X8:  {"vinsertf32x8", formRVMI, 0x1a, 0, 0, i3A | evexOnly | m32 | only64},
	code.VInsertI64X4:  {"vinserti64x4", formRVMI, 0x3a, 0, 0, q3A | evexOnly | m32 | only64},
	code.VExtractF128:  {"vextractf128", formMRI, 0x19, 0, 0, i3A | vexOnly | m16 | min32},
	code.VExtractI128:  {"vextracti128", formMRI, 0x39, 0, 0, i3A | vexOnly | m16 | min32},
	code.VExtractI32X4: {"vextracti32x4", formMRI, 0x39, 0, 0, i3A | evexOnly | m16 | min32},
	code.VExtractI64X4: {"vextracti64x4", formMRI, 0x3b, 0, 0, q3A | evexOnly | m32 | only64},

	// Gathers and scatters. The letters: D or Q index, then the data. W is the width of the wider of the two; Mem.Index
	// is a vector register. AVX2 (no K in the name): A is the mask. AVX-512: KM. The mask is zero afterwards.
	code.VPGatherDD:  {"vpgatherdd", formGV, 0x90, 0, 0, i38 | vexOnly | early},
	code.VPGatherDQ:  {"vpgatherdq", formGV, 0x90, 0, 0, q38 | vw1 | vexOnly | early | hv},
	code.VPGatherQD:  {"vpgatherqd", formGV, 0x91, 0, 0, i38 | vexOnly | early | dHalf},
	code.VPGatherQQ:  {"vpgatherqq", formGV, 0x91, 0, 0, q38 | vw1 | vexOnly | early},
	code.VPGatherDDK: {"vpgatherdd", formGK, 0x90, 0, 0, i38 | evexOnly | early | t4},
	code.VPGatherDQK: {"vpgatherdq", formGK, 0x90, 0, 0, q38 | evexOnly | early | t8},
	code.VPGatherQDK: {"vpgatherqd", formGK, 0x91, 0, 0, i38 | evexOnly | early | t4},
	code.VPGatherQQK: {"vpgatherqq", formGK, 0x91, 0, 0, q38 | evexOnly | early | t8},
	code.VPScatterDD: {"vpscatterdd", formSK, 0xa0, 0, 0, i38 | evexOnly | t4},
	code.VPScatterDQ: {"vpscatterdq", formSK, 0xa0, 0, 0, q38 | evexOnly | t8},
	code.VPScatterQD: {"vpscatterqd", formSK, 0xa1, 0, 0, i38 | evexOnly | t4},
	code.VPScatterQQ: {"vpscatterqq", formSK, 0xa1, 0, 0, q38 | evexOnly | t8},
}
