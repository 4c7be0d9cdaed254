package objc

import "strings"

// Selector names a message, by its row of the table.
type Selector int

// The messages that the driver sends.
const (
	New Selector = iota
	Alloc
	Retain
	Release
	RespondsToSelector
	InitWithBytes
	UTF8String
	Count
	ObjectAtIndex
	Code
	LocalizedDescription
	FileURLWithPath

	DeviceName
	Architecture
	ArchitectureName
	SupportsFamily
	HasUnifiedMemory
	RecommendedMaxWorkingSetSize
	MaxBufferLength
	NewCommandQueue
	NewBufferWithBytes
	NewBufferWithBytesNoCopy
	NewLibraryWithSource
	NewComputePipelineState

	SetLabel
	CommandBuffer
	ComputeCommandEncoder
	Commit
	WaitUntilCompleted
	Status
	ErrorOf
	GPUStartTime
	GPUEndTime

	SetComputePipelineState
	SetBuffer
	SetBytes
	SetThreadgroupMemoryLength
	DispatchThreads
	MemoryBarrier
	EndEncoding

	SetFastMathEnabled
	SetMathMode
	SetMathFloatingPointFunctions
	SetLanguageVersion
	NewFunctionWithName
	NewFunctionWithConstants
	SetConstantValue
	SetComputeFunction
	SetMaxTotalThreadsPerThreadgroup
	MaxTotalThreadsPerThreadgroup
	ThreadExecutionWidth
	StaticThreadgroupMemoryLength

	SharedCaptureManager
	SupportsDestination
	StartCapture
	StopCapture
	SetCaptureObject
	SetDestination
	SetOutputURL
	numSelectors
)

// Row describes a message. Facts, each with where it is from: see Sources.
type Row struct {
	Name  string // the selector
	Of    string // the class or protocol whose objects understand it; a class's own where it begins with "+"
	Types string // of the result and the arguments, as Objective-C encodes them: "v @ Q Q"
	Since int    // the first macOS that has it, where that is newer than the least that the driver takes; else 0
	From  string // keys of Sources
}

// Least is the oldest macOS that the driver takes: the first with bfloat in Metal's language.
const Least = 14

// Owned reports whether the caller has to release the result: by the rule of Cocoa, methods of the families alloc, new,
// copy and mutableCopy give what is the caller's, and init what alloc gave. Others give what lives until the pool ends.
func (r *Row) Owned() bool {
	for _, family := range []string{"alloc", "new", "copy", "mutableCopy", "init"} {
		if rest, ok := strings.CutPrefix(r.Name, family); ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			return r.Types[0] == '@'
		}
	}
	return false
}

// Sources says what the keys of Row.From stand for.
var Sources = map[string]string{
	"PO": "pyobjc-framework-Metal 12.2.2, Metal/_metadata.py: encodings of the methods of Metal's protocols",
	"AD": "Apple's documentation of Metal and Foundation",
	"RS": "the crate objc2-metal 0.3.2, src/generated: Apple's headers with their comments",
	"MC": "metal-cpp 26, Metal/*.hpp: Apple's own list of selectors",
	"TG": "tinygrad, runtime/autogen/metal.py: selectors with types",
}

// Rows is the table.
var Rows = [numSelectors]Row{
	New:                  {"new", "+NSObject", "@", 0, "AD MC"},
	Alloc:                {"alloc", "+NSObject", "@", 0, "AD MC"},
	Retain:               {"retain", "NSObject", "@", 0, "AD MC"},
	Release:              {"release", "NSObject", "v", 0, "AD MC"},
	RespondsToSelector:   {"respondsToSelector:", "NSObject", "Z :", 0, "AD"},
	InitWithBytes:        {"initWithBytes:length:encoding:", "NSString", "@ ^v Q Q", 0, "AD"},
	UTF8String:           {"UTF8String", "NSString", "*", 0, "AD MC"},
	Count:                {"count", "NSArray", "Q", 0, "AD MC"},
	ObjectAtIndex:        {"objectAtIndex:", "NSArray", "@ Q", 0, "AD MC"},
	Code:                 {"code", "NSError", "q", 0, "AD MC"},
	LocalizedDescription: {"localizedDescription", "NSError", "@", 0, "AD MC"},
	FileURLWithPath:      {"fileURLWithPath:", "+NSURL", "@ @", 0, "AD MC"},

	DeviceName:                   {"name", "MTLDevice", "@", 0, "PO"},
	Architecture:                 {"architecture", "MTLDevice", "@", 0, "PO RS"},
	ArchitectureName:             {"name", "MTLArchitecture", "@", 0, "RS MC"},
	SupportsFamily:               {"supportsFamily:", "MTLDevice", "Z q", 0, "PO"},
	HasUnifiedMemory:             {"hasUnifiedMemory", "MTLDevice", "Z", 0, "PO"},
	RecommendedMaxWorkingSetSize: {"recommendedMaxWorkingSetSize", "MTLDevice", "Q", 0, "PO"},
	MaxBufferLength:              {"maxBufferLength", "MTLDevice", "Q", 0, "PO"},
	NewCommandQueue:              {"newCommandQueueWithMaxCommandBufferCount:", "MTLDevice", "@ Q", 0, "PO"},
	NewBufferWithBytes:           {"newBufferWithBytes:length:options:", "MTLDevice", "@ ^v Q Q", 0, "PO"},
	NewBufferWithBytesNoCopy: {"newBufferWithBytesNoCopy:length:options:deallocator:", "MTLDevice", "@ ^v Q Q @?", 0,
		"PO"},
	NewLibraryWithSource: {"newLibraryWithSource:options:error:", "MTLDevice", "@ @ @ ^@", 0, "PO"},
	NewComputePipelineState: {"newComputePipelineStateWithDescriptor:options:reflection:error:", "MTLDevice",
		"@ @ Q ^@ ^@", 0, "PO"},

	SetLabel:              {"setLabel:", "MTLCommandBuffer", "v @", 0, "PO"},
	CommandBuffer:         {"commandBufferWithUnretainedReferences", "MTLCommandQueue", "@", 0, "PO"},
	ComputeCommandEncoder: {"computeCommandEncoderWithDispatchType:", "MTLCommandBuffer", "@ Q", 0, "PO"},
	Commit:                {"commit", "MTLCommandBuffer", "v", 0, "PO"},
	WaitUntilCompleted:    {"waitUntilCompleted", "MTLCommandBuffer", "v", 0, "PO"},
	Status:                {"status", "MTLCommandBuffer", "q", 0, "PO"},
	ErrorOf:               {"error", "MTLCommandBuffer", "@", 0, "PO"},
	GPUStartTime:          {"GPUStartTime", "MTLCommandBuffer", "d", 0, "PO"},
	GPUEndTime:            {"GPUEndTime", "MTLCommandBuffer", "d", 0, "PO"},

	SetComputePipelineState: {"setComputePipelineState:", "MTLComputeCommandEncoder", "v @", 0, "PO"},
	SetBuffer:               {"setBuffer:offset:atIndex:", "MTLComputeCommandEncoder", "v @ Q Q", 0, "PO"},
	SetBytes:                {"setBytes:length:atIndex:", "MTLComputeCommandEncoder", "v ^v Q Q", 0, "PO"},
	SetThreadgroupMemoryLength: {"setThreadgroupMemoryLength:atIndex:", "MTLComputeCommandEncoder", "v Q Q", 0,
		"PO"},
	DispatchThreads: {"dispatchThreads:threadsPerThreadgroup:", "MTLComputeCommandEncoder",
		"v {MTLSize=QQQ} {MTLSize=QQQ}", 0, "PO"},
	MemoryBarrier: {"memoryBarrierWithScope:", "MTLComputeCommandEncoder", "v Q", 0, "PO"},
	EndEncoding:   {"endEncoding", "MTLComputeCommandEncoder", "v", 0, "PO"},

	SetFastMathEnabled:            {"setFastMathEnabled:", "MTLCompileOptions", "v Z", 0, "PO RS"},
	SetMathMode:                   {"setMathMode:", "MTLCompileOptions", "v q", 15, "RS MC"},
	SetMathFloatingPointFunctions: {"setMathFloatingPointFunctions:", "MTLCompileOptions", "v q", 15, "RS MC"},
	SetLanguageVersion:            {"setLanguageVersion:", "MTLCompileOptions", "v Q", 0, "RS MC TG"},
	NewFunctionWithName:           {"newFunctionWithName:", "MTLLibrary", "@ @", 0, "PO"},
	NewFunctionWithConstants: {"newFunctionWithName:constantValues:error:", "MTLLibrary", "@ @ @ ^@", 0,
		"PO"},
	SetConstantValue:   {"setConstantValue:type:atIndex:", "MTLFunctionConstantValues", "v ^v Q Q", 0, "RS MC"},
	SetComputeFunction: {"setComputeFunction:", "MTLComputePipelineDescriptor", "v @", 0, "RS MC TG"},
	SetMaxTotalThreadsPerThreadgroup: {"setMaxTotalThreadsPerThreadgroup:", "MTLComputePipelineDescriptor", "v Q", 0,
		"RS MC"},
	MaxTotalThreadsPerThreadgroup: {"maxTotalThreadsPerThreadgroup", "MTLComputePipelineState", "Q", 0, "PO"},
	ThreadExecutionWidth:          {"threadExecutionWidth", "MTLComputePipelineState", "Q", 0, "PO"},
	StaticThreadgroupMemoryLength: {"staticThreadgroupMemoryLength", "MTLComputePipelineState", "Q", 0, "PO"},

	SharedCaptureManager: {"sharedCaptureManager", "+MTLCaptureManager", "@", 0, "AD MC"},
	SupportsDestination:  {"supportsDestination:", "MTLCaptureManager", "Z q", 0, "PO RS"},
	StartCapture:         {"startCaptureWithDescriptor:error:", "MTLCaptureManager", "Z @ ^@", 0, "PO RS"},
	StopCapture:          {"stopCapture", "MTLCaptureManager", "v", 0, "AD MC"},
	SetCaptureObject:     {"setCaptureObject:", "MTLCaptureDescriptor", "v @", 0, "RS MC"},
	SetDestination:       {"setDestination:", "MTLCaptureDescriptor", "v q", 0, "RS MC"},
	SetOutputURL:         {"setOutputURL:", "MTLCaptureDescriptor", "v @", 0, "RS MC"},
}
