package arm64

// opcode names an operation. Its spec says how it is written.
type opcode uint16

// The operations, and first those that are no instructions.
const (
	none opcode = iota
	place
	loopBegin
	loopEnd
	coldBegin
	coldEnd
	saveLive
	loadLive

	// Lanes of floats: S has 32 bits, D 64.
	fAddS
	fAddD
	fSubS
	fSubD
	fMulS
	fMulD
	fDivS
	fDivD
	fMlaS
	fMlaD
	fMlsS
	fMlsD
	fCmEqS
	fCmEqD
	fCmGeS
	fCmGeD
	fCmGtS
	fCmGtD
	fMinS
	fMinD
	fMaxS
	fMaxD
	fMinNMS
	fMinNMD
	fMaxNMS
	fMaxNMD
	fSqrtS
	fSqrtD
	fNegD
	fRintNS
	fRintND
	fRintMS
	fRintMD
	fRintPS
	fRintPD
	fRintZS
	fRintZD
	sCvtFS
	sCvtFD
	uCvtFS
	uCvtFD
	fCvtZSS
	fCvtZSD
	fCvtZUS
	fCvtZUD
	fCvtLS
	fCvtL2S
	fCvtLH
	fCvtL2H
	fCvtND
	fCvtN2D
	fCvtNS
	fCvtN2S
	fAddOne
	fSubOne

	// Halves: H has 16 bits. The products of fMlaL are of those in the lower half of both, the products of fMlaL2 of those
	// in the upper one.
	fAddH
	fSubH
	fMulH
	fDivH
	fSqrtH
	fMlaL
	fMlaL2
	bfCvtNS
	bfCvtN2S

	// Lanes of integers.
	addB
	addS
	addD
	subS
	subD
	cmEqS
	cmEqD
	cmGtS
	cmGtD
	sShlS
	sShlD
	uShlS
	uShlD
	mulS
	sMinS
	uMinS
	sMaxS
	uMaxS
	uMaxPS
	andV
	bicV
	orrV
	eorV
	bslV
	bitV
	notV
	absS
	absD
	negS
	negD
	clzS
	cntB
	uAddLPB
	uAddLPH
	uAddLPS
	addVH
	addVS
	addVB
	sMullS
	uMullS

	// Shifts by a constant.
	sShrS
	sShrD
	uShrS
	uShrD
	shlS
	shlD

	// Lanes twice as wide, and half.
	sXtlB
	sXtlH
	sXtlS
	sXtl2H
	sXtl2S
	uXtlB
	uXtlH
	uXtlS
	uXtl2H
	uXtl2S
	shllH
	shll2H
	xtnH
	xtnD
	xtn2D
	sQXtnS
	sQXtn2S
	sQXtunS
	sQXtun2S

	// Permutations of lanes.
	zip1S
	zip1D
	zip2S
	zip2D
	uzp1S
	uzp1H
	uzp2H
	uzp2S
	extV
	tbl1
	tbl2
	dupS
	dupD
	dupH
	dupB
	dupGS
	dupGD
	insS
	insD
	uMovD
	sMovS

	// Moves of vectors, and constants in them.
	movV
	movLow
	movLowS
	fMovToG
	fMovToGX
	fMovFromG
	fMovFromGX
	movi4s
	mvni4s
	movi8h
	movi16b
	movi2d
	fMovI4s

	// Loads and stores. Their words are those with a constant of 9 bits that is not scaled; see address.
	ldrQ
	ldrD
	ldrS
	strQ
	strD
	strS
	ldrX
	ldrW
	ldrhW
	ldrbW
	ldrsbW
	ldrsbX
	ldrshW
	ldrshX
	ldrswX
	strX
	strW
	strhW
	strbW
	ldpQ
	stpQ
	ldrLitQ
	ld1S
	ld1D
	st1S
	st1D
	ld1rS
	ld1rD
	ld1rH
	ld1rB
	prfm

	// General registers: of 32 bits, or 64 with bit 31.
	addG
	addSX
	subG
	andG
	orrG
	eorG
	addsG
	subsG
	andsG
	mvnG
	negG
	negsG
	addI
	subI
	addsI
	subsI
	andI
	orrI
	eorI
	andsI
	movG
	movW
	movZ
	movN
	movK
	lslV
	lsrV
	asrV
	uDiv
	sDiv
	mSub
	mulG
	sMulH
	uMulH
	uBfm
	sBfm
	clzG
	rbitG
	revW
	revX
	cSel
	cSet

	// Control.
	branch
	branchIf
	cbz
	cbnz
	tbz
	branchTo
	ret
	adr
	adrPool
	adrp
	dmb
	ldaxr
	stlxr
	numOpcodes
)

// specs are the operations' words, by opcode.
var specs = [numOpcodes]spec{

	// Lanes of floats: S has 32 bits, D 64.
	fAddS:   {"fadd v{d}.4s, v{n}.4s, v{m}.4s", 0x4E20D400, 0},
	fAddD:   {"fadd v{d}.2d, v{n}.2d, v{m}.2d", 0x4E60D400, 0},
	fSubS:   {"fsub v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA0D400, 0},
	fSubD:   {"fsub v{d}.2d, v{n}.2d, v{m}.2d", 0x4EE0D400, 0},
	fMulS:   {"fmul v{d}.4s, v{n}.4s, v{m}.4s", 0x6E20DC00, 0},
	fMulD:   {"fmul v{d}.2d, v{n}.2d, v{m}.2d", 0x6E60DC00, 0},
	fDivS:   {"fdiv v{d}.4s, v{n}.4s, v{m}.4s", 0x6E20FC00, 0},
	fDivD:   {"fdiv v{d}.2d, v{n}.2d, v{m}.2d", 0x6E60FC00, 0},
	fMlaS:   {"fmla v{d}.4s, v{n}.4s, v{m}.4s", 0x4E20CC00, tied},
	fMlaD:   {"fmla v{d}.2d, v{n}.2d, v{m}.2d", 0x4E60CC00, tied},
	fMlsS:   {"fmls v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA0CC00, tied},
	fMlsD:   {"fmls v{d}.2d, v{n}.2d, v{m}.2d", 0x4EE0CC00, tied},
	fCmEqS:  {"fcmeq v{d}.4s, v{n}.4s, v{m}.4s", 0x4E20E400, 0},
	fCmEqD:  {"fcmeq v{d}.2d, v{n}.2d, v{m}.2d", 0x4E60E400, 0},
	fCmGeS:  {"fcmge v{d}.4s, v{n}.4s, v{m}.4s", 0x6E20E400, 0},
	fCmGeD:  {"fcmge v{d}.2d, v{n}.2d, v{m}.2d", 0x6E60E400, 0},
	fCmGtS:  {"fcmgt v{d}.4s, v{n}.4s, v{m}.4s", 0x6EA0E400, 0},
	fCmGtD:  {"fcmgt v{d}.2d, v{n}.2d, v{m}.2d", 0x6EE0E400, 0},
	fMinS:   {"fmin v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA0F400, 0},
	fMinD:   {"fmin v{d}.2d, v{n}.2d, v{m}.2d", 0x4EE0F400, 0},
	fMaxS:   {"fmax v{d}.4s, v{n}.4s, v{m}.4s", 0x4E20F400, 0},
	fMaxD:   {"fmax v{d}.2d, v{n}.2d, v{m}.2d", 0x4E60F400, 0},
	fMinNMS: {"fminnm v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA0C400, 0},
	fMinNMD: {"fminnm v{d}.2d, v{n}.2d, v{m}.2d", 0x4EE0C400, 0},
	fMaxNMS: {"fmaxnm v{d}.4s, v{n}.4s, v{m}.4s", 0x4E20C400, 0},
	fMaxNMD: {"fmaxnm v{d}.2d, v{n}.2d, v{m}.2d", 0x4E60C400, 0},
	fSqrtS:  {"fsqrt v{d}.4s, v{n}.4s", 0x6EA1F800, 0},
	fSqrtD:  {"fsqrt v{d}.2d, v{n}.2d", 0x6EE1F800, 0},
	fNegD:   {"fneg v{d}.2d, v{n}.2d", 0x6EE0F800, 0},
	fRintNS: {"frintn v{d}.4s, v{n}.4s", 0x4E218800, 0},
	fRintND: {"frintn v{d}.2d, v{n}.2d", 0x4E618800, 0},
	fRintMS: {"frintm v{d}.4s, v{n}.4s", 0x4E219800, 0},
	fRintMD: {"frintm v{d}.2d, v{n}.2d", 0x4E619800, 0},
	fRintPS: {"frintp v{d}.4s, v{n}.4s", 0x4EA18800, 0},
	fRintPD: {"frintp v{d}.2d, v{n}.2d", 0x4EE18800, 0},
	fRintZS: {"frintz v{d}.4s, v{n}.4s", 0x4EA19800, 0},
	fRintZD: {"frintz v{d}.2d, v{n}.2d", 0x4EE19800, 0},
	sCvtFS:  {"scvtf v{d}.4s, v{n}.4s", 0x4E21D800, 0},
	sCvtFD:  {"scvtf v{d}.2d, v{n}.2d", 0x4E61D800, 0},
	uCvtFS:  {"ucvtf v{d}.4s, v{n}.4s", 0x6E21D800, 0},
	uCvtFD:  {"ucvtf v{d}.2d, v{n}.2d", 0x6E61D800, 0},
	fCvtZSS: {"fcvtzs v{d}.4s, v{n}.4s", 0x4EA1B800, 0},
	fCvtZSD: {"fcvtzs v{d}.2d, v{n}.2d", 0x4EE1B800, 0},
	fCvtZUS: {"fcvtzu v{d}.4s, v{n}.4s", 0x6EA1B800, 0},
	fCvtZUD: {"fcvtzu v{d}.2d, v{n}.2d", 0x6EE1B800, 0},
	fCvtLS:  {"fcvtl v{d}.2d, v{n}.2s", 0x0E617800, 0},
	fCvtL2S: {"fcvtl2 v{d}.2d, v{n}.4s", 0x4E617800, 0},
	fCvtLH:  {"fcvtl v{d}.4s, v{n}.4h", 0x0E217800, 0},
	fCvtL2H: {"fcvtl2 v{d}.4s, v{n}.8h", 0x4E217800, 0},
	fCvtND:  {"fcvtn v{d}.2s, v{n}.2d", 0x0E616800, 0},
	fCvtN2D: {"fcvtn2 v{d}.4s, v{n}.2d", 0x4E616800, tied},
	fCvtNS:  {"fcvtn v{d}.4h, v{n}.4s", 0x0E216800, 0},
	fCvtN2S: {"fcvtn2 v{d}.8h, v{n}.4s", 0x4E216800, tied},
	fAddOne: {"fadd s{d}, s{n}, s{m}", 0x1E202800, 0},
	fSubOne: {"fsub s{d}, s{n}, s{m}", 0x1E203800, 0},

	// Halves.
	fAddH:    {"fadd v{d}.8h, v{n}.8h, v{m}.8h", 0x4E401400, 0},
	fSubH:    {"fsub v{d}.8h, v{n}.8h, v{m}.8h", 0x4EC01400, 0},
	fMulH:    {"fmul v{d}.8h, v{n}.8h, v{m}.8h", 0x6E401C00, 0},
	fDivH:    {"fdiv v{d}.8h, v{n}.8h, v{m}.8h", 0x6E403C00, 0},
	fSqrtH:   {"fsqrt v{d}.8h, v{n}.8h", 0x6EF9F800, 0},
	fMlaL:    {"fmlal v{d}.4s, v{n}.4h, v{m}.4h", 0x4E20EC00, tied},
	fMlaL2:   {"fmlal2 v{d}.4s, v{n}.4h, v{m}.4h", 0x6E20CC00, tied},
	bfCvtNS:  {"bfcvtn v{d}.4h, v{n}.4s", 0x0EA16800, 0},
	bfCvtN2S: {"bfcvtn2 v{d}.8h, v{n}.4s", 0x4EA16800, tied},

	// Lanes of integers.
	addB:    {"add v{d}.16b, v{n}.16b, v{m}.16b", 0x4E208400, 0},
	addS:    {"add v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA08400, 0},
	addD:    {"add v{d}.2d, v{n}.2d, v{m}.2d", 0x4EE08400, 0},
	subS:    {"sub v{d}.4s, v{n}.4s, v{m}.4s", 0x6EA08400, 0},
	subD:    {"sub v{d}.2d, v{n}.2d, v{m}.2d", 0x6EE08400, 0},
	cmEqS:   {"cmeq v{d}.4s, v{n}.4s, v{m}.4s", 0x6EA08C00, 0},
	cmEqD:   {"cmeq v{d}.2d, v{n}.2d, v{m}.2d", 0x6EE08C00, 0},
	cmGtS:   {"cmgt v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA03400, 0},
	cmGtD:   {"cmgt v{d}.2d, v{n}.2d, v{m}.2d", 0x4EE03400, 0},
	sShlS:   {"sshl v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA04400, 0},
	sShlD:   {"sshl v{d}.2d, v{n}.2d, v{m}.2d", 0x4EE04400, 0},
	uShlS:   {"ushl v{d}.4s, v{n}.4s, v{m}.4s", 0x6EA04400, 0},
	uShlD:   {"ushl v{d}.2d, v{n}.2d, v{m}.2d", 0x6EE04400, 0},
	mulS:    {"mul v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA09C00, 0},
	sMinS:   {"smin v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA06C00, 0},
	uMinS:   {"umin v{d}.4s, v{n}.4s, v{m}.4s", 0x6EA06C00, 0},
	sMaxS:   {"smax v{d}.4s, v{n}.4s, v{m}.4s", 0x4EA06400, 0},
	uMaxS:   {"umax v{d}.4s, v{n}.4s, v{m}.4s", 0x6EA06400, 0},
	uMaxPS:  {"umaxp v{d}.4s, v{n}.4s, v{m}.4s", 0x6EA0A400, 0},
	andV:    {"and v{d}.16b, v{n}.16b, v{m}.16b", 0x4E201C00, 0},
	bicV:    {"bic v{d}.16b, v{n}.16b, v{m}.16b", 0x4E601C00, 0},
	orrV:    {"orr v{d}.16b, v{n}.16b, v{m}.16b", 0x4EA01C00, 0},
	eorV:    {"eor v{d}.16b, v{n}.16b, v{m}.16b", 0x6E201C00, 0},
	bslV:    {"bsl v{d}.16b, v{n}.16b, v{m}.16b", 0x6E601C00, tied},
	bitV:    {"bit v{d}.16b, v{n}.16b, v{m}.16b", 0x6EA01C00, tied},
	notV:    {"mvn v{d}.16b, v{n}.16b", 0x6E205800, 0},
	absS:    {"abs v{d}.4s, v{n}.4s", 0x4EA0B800, 0},
	absD:    {"abs v{d}.2d, v{n}.2d", 0x4EE0B800, 0},
	negS:    {"neg v{d}.4s, v{n}.4s", 0x6EA0B800, 0},
	negD:    {"neg v{d}.2d, v{n}.2d", 0x6EE0B800, 0},
	clzS:    {"clz v{d}.4s, v{n}.4s", 0x6EA04800, 0},
	cntB:    {"cnt v{d}.16b, v{n}.16b", 0x4E205800, 0},
	uAddLPB: {"uaddlp v{d}.8h, v{n}.16b", 0x6E202800, 0},
	uAddLPH: {"uaddlp v{d}.4s, v{n}.8h", 0x6E602800, 0},
	uAddLPS: {"uaddlp v{d}.2d, v{n}.4s", 0x6EA02800, 0},
	addVH:   {"addv h{d}, v{n}.8h", 0x4E71B800, 0},
	addVS:   {"addv s{d}, v{n}.4s", 0x4EB1B800, 0},
	addVB:   {"addv b{d}, v{n}.8b", 0x0E31B800, 0},
	sMullS:  {"smull v{d}.2d, v{n}.2s, v{m}.2s", 0x0EA0C000, 0},
	uMullS:  {"umull v{d}.2d, v{n}.2s, v{m}.2s", 0x2EA0C000, 0},

	// Shifts by a constant.
	sShrS: {"sshr v{d}.4s, v{n}.4s, #{right32}", 0x4F000400, 0},
	sShrD: {"sshr v{d}.2d, v{n}.2d, #{right64}", 0x4F000400, 0},
	uShrS: {"ushr v{d}.4s, v{n}.4s, #{right32}", 0x6F000400, 0},
	uShrD: {"ushr v{d}.2d, v{n}.2d, #{right64}", 0x6F000400, 0},
	shlS:  {"shl v{d}.4s, v{n}.4s, #{left32}", 0x4F005400, 0},
	shlD:  {"shl v{d}.2d, v{n}.2d, #{left64}", 0x4F005400, 0},

	// Lanes twice as wide, and half.
	sXtlB:    {"sxtl v{d}.8h, v{n}.8b", 0x0F08A400, 0},
	sXtlH:    {"sxtl v{d}.4s, v{n}.4h", 0x0F10A400, 0},
	sXtlS:    {"sxtl v{d}.2d, v{n}.2s", 0x0F20A400, 0},
	sXtl2H:   {"sxtl2 v{d}.4s, v{n}.8h", 0x4F10A400, 0},
	sXtl2S:   {"sxtl2 v{d}.2d, v{n}.4s", 0x4F20A400, 0},
	uXtlB:    {"uxtl v{d}.8h, v{n}.8b", 0x2F08A400, 0},
	uXtlH:    {"uxtl v{d}.4s, v{n}.4h", 0x2F10A400, 0},
	uXtlS:    {"uxtl v{d}.2d, v{n}.2s", 0x2F20A400, 0},
	uXtl2H:   {"uxtl2 v{d}.4s, v{n}.8h", 0x6F10A400, 0},
	uXtl2S:   {"uxtl2 v{d}.2d, v{n}.4s", 0x6F20A400, 0},
	shllH:    {"shll v{d}.4s, v{n}.4h, #16", 0x2E613800, 0},
	shll2H:   {"shll2 v{d}.4s, v{n}.8h, #16", 0x6E613800, 0},
	xtnH:     {"xtn v{d}.8b, v{n}.8h", 0x0E212800, 0},
	xtnD:     {"xtn v{d}.2s, v{n}.2d", 0x0EA12800, 0},
	xtn2D:    {"xtn2 v{d}.4s, v{n}.2d", 0x4EA12800, tied},
	sQXtnS:   {"sqxtn v{d}.4h, v{n}.4s", 0x0E614800, 0},
	sQXtn2S:  {"sqxtn2 v{d}.8h, v{n}.4s", 0x4E614800, tied},
	sQXtunS:  {"sqxtun v{d}.4h, v{n}.4s", 0x2E612800, 0},
	sQXtun2S: {"sqxtun2 v{d}.8h, v{n}.4s", 0x6E612800, tied},

	// Permutations of lanes.
	zip1S: {"zip1 v{d}.4s, v{n}.4s, v{m}.4s", 0x4E803800, 0},
	zip1D: {"zip1 v{d}.2d, v{n}.2d, v{m}.2d", 0x4EC03800, 0},
	zip2S: {"zip2 v{d}.4s, v{n}.4s, v{m}.4s", 0x4E807800, 0},
	zip2D: {"zip2 v{d}.2d, v{n}.2d, v{m}.2d", 0x4EC07800, 0},
	uzp1S: {"uzp1 v{d}.4s, v{n}.4s, v{m}.4s", 0x4E801800, 0},
	uzp1H: {"uzp1 v{d}.8h, v{n}.8h, v{m}.8h", 0x4E401800, 0},
	uzp2H: {"uzp2 v{d}.8h, v{n}.8h, v{m}.8h", 0x4E405800, 0},
	uzp2S: {"uzp2 v{d}.4s, v{n}.4s, v{m}.4s", 0x4E805800, 0},
	extV:  {"ext v{d}.16b, v{n}.16b, v{m}.16b, #{ext}", 0x6E000000, 0},
	tbl1:  {"tbl v{d}.16b, {{v{n}.16b}}, v{m}.16b", 0x4E000000, 0},
	tbl2:  {"tbl v{d}.16b, {{v{n}.16b, v{next}.16b}}, v{m}.16b", 0x4E002000, 0},
	dupS:  {"dup v{d}.4s, v{n}.s[{laneS}]", 0x4E000400, 0},
	dupD:  {"dup v{d}.2d, v{n}.d[{laneD}]", 0x4E000400, 0},
	dupH:  {"dup v{d}.8h, v{n}.h[{laneH}]", 0x4E000400, 0},
	dupB:  {"dup v{d}.16b, v{n}.b[{laneB}]", 0x4E000400, 0},
	dupGS: {"dup v{d}.4s, w{n}", 0x4E040C00, 0},
	dupGD: {"dup v{d}.2d, x{n}", 0x4E080C00, 0},
	insS:  {"ins v{d}.s[{laneS}], v{n}.s[{fromS}]", 0x6E000400, tied},
	insD:  {"ins v{d}.d[{laneD}], v{n}.d[{fromD}]", 0x6E000400, tied},
	uMovD: {"umov x{d}, v{n}.d[{laneD}]", 0x4E003C00, 0},
	sMovS: {"smov x{d}, v{n}.s[{laneS}]", 0x4E002C00, 0},

	// Moves of vectors, and constants in them.
	movV:       {"mov v{d}.16b, v{n}.16b", 0x4EA01C00, copies},
	movLow:     {"fmov d{d}, d{n}", 0x1E604000, 0},
	movLowS:    {"fmov s{d}, s{n}", 0x1E204000, 0},
	fMovToG:    {"fmov w{d}, s{n}", 0x1E260000, 0},
	fMovToGX:   {"fmov x{d}, d{n}", 0x9E660000, 0},
	fMovFromG:  {"fmov s{d}, w{n}", 0x1E270000, 0},
	fMovFromGX: {"fmov d{d}, x{n}", 0x9E670000, 0},
	movi4s:     {"movi v{d}.4s, #{byte}, lsl #{lsl}", 0x4F000400, made},
	mvni4s:     {"mvni v{d}.4s, #{byte}, lsl #{lsl}", 0x6F000400, made},
	movi8h:     {"movi v{d}.8h, #{byte}, lsl #{lsl1}", 0x4F008400, made},
	movi16b:    {"movi v{d}.16b, #{byte}", 0x4F00E400, made},
	movi2d:     {"movi v{d}.2d, #{bytes}", 0x6F00E400, made},
	fMovI4s:    {"fmov v{d}.4s, #{float}", 0x4F00F400, made},

	// Loads and stores. Their words are those with a constant of 9 bits that is not scaled; see address.
	ldrQ:    {"ldr q{d}, {address}", 0x3CC00000, 0},
	ldrD:    {"ldr d{d}, {address}", 0xFC400000, 0},
	ldrS:    {"ldr s{d}, {address}", 0xBC400000, 0},
	strQ:    {"str q{d}, {address}", 0x3C800000, usesD | effect},
	strD:    {"str d{d}, {address}", 0xFC000000, usesD | effect},
	strS:    {"str s{d}, {address}", 0xBC000000, usesD | effect},
	ldrX:    {"ldr x{d}, {address}", 0xF8400000, 0},
	ldrW:    {"ldr w{d}, {address}", 0xB8400000, 0},
	ldrhW:   {"ldrh w{d}, {address}", 0x78400000, 0},
	ldrbW:   {"ldrb w{d}, {address}", 0x38400000, 0},
	ldrsbW:  {"ldrsb w{d}, {address}", 0x38C00000, 0},
	ldrsbX:  {"ldrsb x{d}, {address}", 0x38800000, 0},
	ldrshW:  {"ldrsh w{d}, {address}", 0x78C00000, 0},
	ldrshX:  {"ldrsh x{d}, {address}", 0x78800000, 0},
	ldrswX:  {"ldrsw x{d}, {address}", 0xB8800000, 0},
	strX:    {"str x{d}, {address}", 0xF8000000, usesD | effect},
	strW:    {"str w{d}, {address}", 0xB8000000, usesD | effect},
	strhW:   {"strh w{d}, {address}", 0x78000000, usesD | effect},
	strbW:   {"strb w{d}, {address}", 0x38000000, usesD | effect},
	ldpQ:    {"ldp q{d}, q{a}, [x{n}, #{pair}]", 0xAD400000, definesA},
	stpQ:    {"stp q{d}, q{a}, [x{n}, #{pair}]", 0xAD000000, usesD | effect},
	ldrLitQ: {"ldr q{d}, {pool}", 0x9C000000, made},
	ld1S:    {"ld1 {{v{d}.s}}[{indexS}], [x{n}]", 0x0D408000, tied},
	ld1D:    {"ld1 {{v{d}.d}}[{indexD}], [x{n}]", 0x0D408400, tied},
	st1S:    {"st1 {{v{d}.s}}[{indexS}], [x{n}]", 0x0D008000, usesD | effect},
	st1D:    {"st1 {{v{d}.d}}[{indexD}], [x{n}]", 0x0D008400, usesD | effect},
	ld1rS:   {"ld1r {{v{d}.4s}}, [x{n}]", 0x4D40C800, 0},
	ld1rD:   {"ld1r {{v{d}.2d}}, [x{n}]", 0x4D40CC00, 0},
	ld1rH:   {"ld1r {{v{d}.8h}}, [x{n}]", 0x4D40C400, 0},
	ld1rB:   {"ld1r {{v{d}.16b}}, [x{n}]", 0x4D40C000, 0},
	prfm:    {"prfm {prefetch}", 0xF8800000, effect},

	// General registers: of 32 bits, or 64 with bit 31.
	addG:  {"add r{d}, r{n}, r{m}, lsl #{shift}", 0x0B000000, 0},
	addSX: {"add x{d}, x{n}, w{m}, sxtw #{ext3}", 0x8B20C000, 0},
	subG:  {"sub r{d}, r{n}, r{m}, lsl #{shift}", 0x4B000000, 0},
	andG:  {"and r{d}, r{n}, r{m}, lsl #{shift}", 0x0A000000, 0},
	orrG:  {"orr r{d}, r{n}, r{m}, lsl #{shift}", 0x2A000000, 0},
	eorG:  {"eor r{d}, r{n}, r{m}, lsl #{shift}", 0x4A000000, 0},
	addsG: {"adds r{d}, r{n}, r{m}, lsl #{shift}", 0x2B000000, effect},
	subsG: {"subs r{d}, r{n}, r{m}, lsl #{shift}", 0x6B000000, effect},
	andsG: {"ands r{d}, r{n}, r{m}, lsl #{shift}", 0x6A000000, effect},
	mvnG:  {"mvn r{d}, r{m}", 0x2A2003E0, 0},
	negG:  {"neg r{d}, r{m}", 0x4B0003E0, 0},
	negsG: {"negs r{d}, r{m}", 0x6B0003E0, effect},
	addI:  {"add r{d}, r{n}, #{imm12}", 0x11000000, 0},
	subI:  {"sub r{d}, r{n}, #{imm12}", 0x51000000, 0},
	addsI: {"adds r{d}, r{n}, #{imm12}", 0x31000000, effect},
	subsI: {"subs r{d}, r{n}, #{imm12}", 0x71000000, effect},
	andI:  {"and r{d}, r{n}, #{mask}", 0x12000000, 0},
	orrI:  {"orr r{d}, r{n}, #{mask}", 0x32000000, 0},
	eorI:  {"eor r{d}, r{n}, #{mask}", 0x52000000, 0},
	andsI: {"ands r{d}, r{n}, #{mask}", 0x72000000, effect},
	movG:  {"mov x{d}, x{n}", 0xAA0003E0, copies},
	movW:  {"mov w{d}, w{m}", 0x2A0003E0, 0},
	movZ:  {"movz r{d}, #{imm16}, lsl #{hw}", 0x52800000, made},
	movN:  {"movn r{d}, #{imm16}, lsl #{hw}", 0x12800000, made},
	movK:  {"movk r{d}, #{imm16}, lsl #{hw}", 0x72800000, tied},
	lslV:  {"lsl r{d}, r{n}, r{m}", 0x1AC02000, 0},
	lsrV:  {"lsr r{d}, r{n}, r{m}", 0x1AC02400, 0},
	asrV:  {"asr r{d}, r{n}, r{m}", 0x1AC02800, 0},
	uDiv:  {"udiv r{d}, r{n}, r{m}", 0x1AC00800, 0},
	sDiv:  {"sdiv r{d}, r{n}, r{m}", 0x1AC00C00, 0},
	mSub:  {"msub r{d}, r{n}, r{m}, r{a}", 0x1B008000, 0},
	mulG:  {"mul r{d}, r{n}, r{m}", 0x1B007C00, 0},
	sMulH: {"smulh x{d}, x{n}, x{m}", 0x9B407C00, 0},
	uMulH: {"umulh x{d}, x{n}, x{m}", 0x9BC07C00, 0},
	uBfm:  {"ubfm r{d}, r{n}, #{immr}, #{imms}", 0x53000000, 0},
	sBfm:  {"sbfm r{d}, r{n}, #{immr}, #{imms}", 0x13000000, 0},
	clzG:  {"clz r{d}, r{n}", 0x5AC01000, 0},
	rbitG: {"rbit r{d}, r{n}", 0x5AC00000, 0},
	revW:  {"rev w{d}, w{n}", 0x5AC00800, 0},
	revX:  {"rev x{d}, x{n}", 0xDAC00C00, 0},
	cSel:  {"csel r{d}, r{n}, r{m}, {cond}", 0x1A800000, 0},
	cSet:  {"cset r{d}, {notcond}", 0x1A9F07E0, 0},

	// Control.
	branch:   {"b {label}", 0x14000000, effect},
	branchIf: {"b.{jcond} {label}", 0x54000000, effect},
	cbz:      {"cbz r{d}, {label}", 0x34000000, usesD | effect},
	cbnz:     {"cbnz r{d}, {label}", 0x35000000, usesD | effect},
	tbz:      {"tbz w{d}, #{bit}, {label}", 0x36000000, usesD | effect},
	branchTo: {"br x{n}", 0xD61F0000, effect},
	ret:      {"ret", 0xD65F03C0, effect},
	adr:      {"adr x{d}, {label}", 0x10000000, made},
	adrPool:  {"adr x{d}, {pool}", 0x10000000, made},
	dmb:      {"dmb ish", 0xD5033BBF, effect},
	adrp:     {"adrp x{d}, {page}", 0x90000000, 0},
	ldaxr:    {"ldaxr{size} {sized}{d}, [x{n}]", 0x085FFC00, effect},
	stlxr:    {"stlxr{size} w{m}, {sized}{d}, [x{n}]", 0x0800FC00, usesD | effect},
}
