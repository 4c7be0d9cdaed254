package house

// lawText is the import law of docs/architecture.md as data. It is a statement of policy: a change here needs an entry
// in RATIONALE.md, never only a red test.
//
//	name = pattern, ...     defines a group: folders of this module ("." is the root package; "x/..." is x and what is
//	                        below it), single files, or import paths of other modules
//	a, b < c, d < e         c and d may import a and b; e may import all four. Rules add up; nothing follows from two.
//	a !< b                  no rule may ever let b import a
//
// NAME_test stands for the test files of a group, and TESTS for all test files; a group's tests may import what the
// group may, and the group itself. A group may import its own members. The standard library is open to all, apart from
// unsafe and cgo. Groups may be defined before their folders exist.
const lawText = `
	# The rooms.
	root        = .
	cmd         = cmd/...
	luabind     = luabind
	lua51       = luabind/lua51
	reach       = luabind/reach
	tensor      = tensor
	kernelgen   = tensor/kernelgen
	kit         = tensor/ops/kit, tensor/ops/kit/...
	ops         = tensor/ops
	sig         = tensor/ops/sig
	rooms       = tensor/ops/rooms
	conv        = tensor/ops/conv
	fast        = tensor/ops/fast
	fft         = tensor/ops/fft
	linalg      = tensor/ops/linalg
	multivariate = tensor/ops/multivariate
	products    = tensor/ops/products
	quant       = tensor/ops/quant
	random      = tensor/ops/random
	grad        = tensor/grad
	optest      = tensor/optest
	format      = tensor/format, tensor/format/...
	compile     = compile
	export      = export
	picture     = internal/picture
	plot        = internal/plot
	metal       = metal
	prelude     = metal/prelude
	kir         = metal/kir
	opt         = metal/kir/opt
	msl         = metal/msl, metal/msl/...
	launch      = metal/launch
	front       = metal/front
	interp      = metal/interp
	jit         = metal/jit, metal/jit/...
	soft        = metal/soft
	objc        = metal/apple/objc
	apple       = metal/apple
	applefake   = metal/apple/fake
	ptx         = metal/ptx
	machine     = metal/ptx/machine
	cuda        = metal/cuda, metal/cuda/...
	drivers     = metal/drivers
	drivertest  = metal/drivertest
	testdevice  = metal/testdevice
	kerneltest  = metal/kerneltest
	text        = text, text/...
	hub         = hub
	fetch       = hub/fetch
	hubtest     = hub/hubtest
	serve       = serve
	scripts     = scripts, scripts/...
	examples    = examples, examples/...
	docs        = docs
	house       = internal/house, internal/house/...
	docsgen     = internal/house/docsgen
	brief       = internal/brief
	serial      = internal/serial
	goroutine   = internal/goroutine
	jsonfault   = internal/jsonfault

	# Other modules, and what of the standard library is fenced.
	unsafe      = unsafe
	cgo         = C
	gopher-lua  = github.com/yuin/gopher-lua/...
	purego      = github.com/ebitengine/purego/...
	uniseg      = github.com/rivo/uniseg
	x/term      = golang.org/x/term
	gonum       = gonum.org/v1/gonum/...
	x/sys       = golang.org/x/sys/...
	x/image     = golang.org/x/image/...
	x/text      = golang.org/x/text/...
	regexp2     = github.com/dlclark/regexp2
	testify     = github.com/stretchr/testify/...

	# The back ends: kir never leaves metal/, and metal's core never sees a kernel language.
	kir < opt, msl, launch, interp, jit, ptx, machine, kerneltest
	opt < msl, jit, ptx, interp_test
	launch < interp, jit
	interp < jit
	metal, kir, msl < front
	prelude < msl, kernelgen
	metal, kir, launch, front, interp, jit < soft
	metal, msl, prelude, front, objc < apple
	kir, msl, launch, interp, jit, objc, apple, goroutine < applefake
	objc, apple, applefake < testdevice
	metal, kir, launch, front, ptx < cuda
	metal < drivertest
	metal, soft, apple, cuda < drivers
	drivers < root, cmd
	drivertest < cmd
	apple, applefake < cmd_test
	metal, soft, drivers, drivertest < testdevice < optest

	# The engine.
	metal < kernelgen < tensor < format < ops < grad
	metal, kernelgen, tensor < kit < ops
	tensor < sig < ops, conv, fast, fft, linalg, products, quant, random
	ops, conv, fast, fft, linalg, products, quant, random < rooms
	metal, kernelgen, tensor, kit, ops < conv, fast, fft, linalg, products, quant, random
	metal, kernelgen, tensor, kit, ops, sig, linalg, random < multivariate < rooms
	metal, tensor, kernelgen < compile
	tensor, format, compile < export < luabind, root
	ops, sig, grad, compile < optest
	metal, tensor < optest

	# Lua, and what embedders and users see. lua51 mends Lua itself, reach walks what a script can come to: neither knows
	# tensors.
	lua51, reach < luabind
	lua51 < reach_test
	tensor, ops, grad, compile, scripts, text < luabind < root < cmd, examples
	goroutine < luabind, compile
	jsonfault < luabind, text, format, fetch
	conv, fast, fft, linalg, products, quant, random < luabind, root, cmd, examples
	metal, format < luabind, root, cmd
	picture, plot, hub < luabind
	x/image < plot, picture
	sig, rooms, docs < luabind
	sig, luabind, docs < docsgen

	# Models from the hub: who looks into the cache asks nothing of the network, only the program downloads.
	hub < fetch < cmd
	hub < cmd

	# The server of language models stands on the package that embedders use.
	root, text < serve < cmd, examples

	# Tests.
	testify, brief, serial, testdevice < TESTS
	drivertest < metal_test, soft_test, apple_test, cuda_test, tensor_test, ops_test, compile_test, luabind_test, root_test
	optest < ops_test, grad_test, compile_test, luabind_test
	tensor, ops, optest, grad, compile < docsgen_test
	metal, tensor, ops, sig, optest, grad, soft, drivers < rooms_test
	optest, grad, compile < conv_test, fast_test, fft_test, linalg_test, products_test, quant_test, random_test
	soft, drivers < kit_test, conv_test, fast_test, fft_test, linalg_test, products_test, quant_test, random_test
	conv, fast, fft, linalg, products, quant, random < ops_test
	optest, grad, compile, soft, drivers < multivariate_test
	ops, fast, linalg, grad < compile_test
	ops, sig, fast, rooms, grad, optest < export_test
	testify, brief < optest
	soft, drivers < format_test
	grad, compile < ops_test
	msl, kir < opt_test, interp_test, jit_test, prelude_test
	interp, launch < opt_test
	prelude, interp, launch < msl_test, jit_test
	jit < msl_test
	kerneltest < kir_test, opt_test, interp_test, jit_test, ptx_test, msl_test, soft_test
	msl, interp, launch, machine < ptx_test
	machine < cuda_test
	applefake < drivers_test
	applefake, front, drivertest < apple_test
	msl, interp, launch < kerneltest_test
	soft, drivers < drivertest_test, tensor_test, ops_test, grad_test, compile_test, luabind_test, examples_test
	msl, metal < kernelgen_test
	hubtest < fetch_test, cmd_test

	# Who may use what of others.
	purego < objc, cuda
	gopher-lua < lua51, reach, luabind, cmd
	uniseg, x/term < cmd
	gonum < fft_test, linalg
	x/text, regexp2 < text
	x/sys < soft, format, fetch, cmd, pages, features
	unsafe < mapping, interp, jit, soft, objc, apple, applefake, cuda, fake, instructions

	mapping = metal/mapping.go, metal/mapping_*.go
	fake    = metal/drivertest/fake.go
	pages   = metal/jit/native/pages_windows_amd64.go
	features = metal/jit/arm64/detect_linux.go, metal/jit/arm64/detect_darwin.go
	instructions = luabind/lua51/instructions.go, luabind/lua51/instructions_test.go

	# Walls that no later rule may breach: the leaves of ops stand side by side. multivariate stands on two of them, and
	# nothing but rooms on it.
	conv   !< fast, fft, linalg, products, quant, random
	fast   !< conv, fft, linalg, products, quant, random
	fft    !< conv, fast, linalg, products, quant, random
	linalg !< conv, fast, fft, products, quant, random
	products !< conv, fast, fft, linalg, quant, random
	quant  !< conv, fast, fft, linalg, products, random
	random !< conv, fast, fft, linalg, products, quant
	multivariate !< conv, fast, fft, linalg, products, quant, random
	multivariate !< ops, grad, compile, tensor, kernelgen, kit, sig, luabind, lua51, reach
	cgo, kir, msl, interp, jit !< multivariate
	cgo !< conv, fast, fft, linalg, products, quant, random
	cgo !< sig, rooms, docs, export, picture, plot, text, hub, fetch, hubtest
	fetch !< luabind, root, lua51, examples
	metal, tensor, ops, format, luabind, gopher-lua, text !< hub, fetch, hubtest
	metal, tensor, ops, format, luabind, gopher-lua !< picture, plot
	metal, kir, msl, kernelgen, tensor, format, kit, ops, grad, compile, scripts, luabind !< text
	cgo !< root, cmd, luabind, tensor, kernelgen, kit, ops, grad, optest, format, compile, scripts, examples, house
	cgo !< metal, prelude, kir, msl, interp, jit, ptx, soft, apple, cuda, drivers, drivertest, kerneltest
	metal !< kir, msl, prelude, launch, interp, jit, ptx
	msl, kir, launch, front, interp, jit, ptx, soft, apple, cuda !< metal
	kir, msl, launch, front, interp, jit, ptx !< kit, conv, fast, fft, linalg, products, quant, random
	kir, msl, launch, front, interp, jit, ptx !< kernelgen, tensor, format, ops, grad, compile, luabind, root, cmd, optest
	conv, fast, fft, linalg, products, quant, random !< ops, grad, compile, tensor, kernelgen, kit
	ops, grad !< compile, tensor, kernelgen, kit
	kit, ops, conv, fast, fft, linalg, products, quant, random, rooms, luabind !< sig
	rooms !< ops, conv, fast, fft, linalg, products, quant, random
	export !< tensor, kernelgen, format, kit, ops, grad, compile, sig, rooms
	gopher-lua !< root, tensor, kit, ops, grad, compile, metal
	metal, kernelgen, tensor, format, kit, ops, grad, compile, scripts, luabind !< lua51, reach
	conv, fast, fft, linalg, products, quant, random !< lua51, reach
	purego !< root, luabind, tensor, metal, soft, ptx
`
