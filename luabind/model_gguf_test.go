package luabind

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// ggufKind is a type of elements: its number, how many are a block, its bytes, and the halves that data puts into it.
type ggufKind struct {
	number       uint32
	block, bytes int
	halves       map[int]uint16
}

// ggufKinds are as SCALES in testdata/lm/gguf_models.py.
var ggufKinds = map[string]ggufKind{
	"F32": {0, 1, 4, nil}, "F16": {1, 1, 2, nil}, "BF16": {30, 1, 2, nil},
	"Q8_0": {8, 32, 34, map[int]uint16{0: 0x1400}}, "Q4_0": {2, 32, 18, map[int]uint16{0: 0x2400}},
	"Q4_1": {3, 32, 20, map[int]uint16{0: 0x2400, 2: 0xB000}}, "Q5_0": {6, 32, 22, map[int]uint16{0: 0x2000}},
	"Q5_1": {7, 32, 24, map[int]uint16{0: 0x2000, 2: 0xB000}},
	"Q4_K": {12, 256, 144, map[int]uint16{0: 0x0800, 2: 0x1400}},
	"Q5_K": {13, 256, 176, map[int]uint16{0: 0x0400, 2: 0x1400}}, "Q6_K": {14, 256, 210, map[int]uint16{208: 0x0200}},
}

// drawnWeights is fill in testdata/lm/generate.py: n numbers from -1 to 1 by a name.
func drawnWeights(name string, n int) []float32 {
	seed := uint32(0)
	for _, c := range []byte(name) {
		seed = uint32((uint64(seed)*31 + uint64(c)) % math.MaxInt32)
	}
	out := make([]float32, n)
	for i := range out {
		x := uint32(i)*2654435761 + seed
		x = (x ^ x>>15) * 2246822519
		x = (x ^ x>>13) * 3266489917
		x ^= x >> 16
		out[i] = float32(x>>8)*(1.0/(1<<23)) - 1
	}
	return out
}

// ggufData is data in testdata/lm/gguf_models.py: a tensor's bytes.
func ggufData(name string, shape []int, kind string) (out []byte) {
	size := 1
	for _, n := range shape {
		size *= n
	}
	k := ggufKinds[kind]
	if k.block > 1 {
		for _, u := range drawnWeights(name, size/k.block*k.bytes) {
			// fill's product by 0.14 and the quotient by it leave the numbers as they are, but for a rounding
			y := float32(float32(u*0.14)/0.14) + 1
			out = append(out, byte(float32(y*128)))
		}
		for i := 0; i < len(out); i += k.bytes {
			for at, half := range k.halves {
				binary.LittleEndian.PutUint16(out[i+at:], half)
			}
		}
		return out
	}
	for _, u := range drawnWeights(name, size) {
		v := float32(u * 0.14)
		if len(shape) == 1 {
			v = float32(u*0.3) + 0.5
		}
		switch kind {
		case "F16":
			out = binary.LittleEndian.AppendUint16(out, tensor.Float16Bits(v))
		case "BF16":
			out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(v)>>16))
		default:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// ggufCase is a golden file of testdata/lm/gguf.
type ggufCase struct {
	Metadata map[string]any
	Tensors  [][3]any // name, shape, type
}

// bytes is the GGUF file with more metadata.
func (c *ggufCase) bytes(t *testing.T, more map[string]any) []byte {
	var head, data bytes.Buffer
	put := func(v any) { require.NoError(t, binary.Write(&head, binary.LittleEndian, v)) }
	text := func(s string) {
		put(uint64(len(s)))
		head.WriteString(s)
	}
	var value func(v any, typed bool)
	value = func(v any, typed bool) { // typed: its type goes before it
		kind := func(n uint32) {
			if typed {
				put(n)
			}
		}
		switch v := v.(type) {
		case string:
			kind(8)
			text(v)
		case float64:
			if v == math.Trunc(v) && v < 1e5 {
				kind(4)
				put(uint32(v))
			} else {
				kind(6)
				put(float32(v))
			}
		case float32:
			kind(6)
			put(v)
		case int32:
			kind(5)
			put(v)
		case bool:
			kind(7)
			put(v)
		case []any:
			kind(9)
			switch v[0].(type) {
			case string:
				put(uint32(8))
			case float32:
				put(uint32(6))
			default:
				put(uint32(5))
			}
			put(uint64(len(v)))
			for _, e := range v {
				value(e, false)
			}
		default:
			require.Failf(t, "metadata", "%T", v)
		}
	}
	about := map[string]any{}
	for _, m := range []map[string]any{c.Metadata, more} {
		for k, v := range m {
			about[k] = v
		}
	}
	head.WriteString("GGUF")
	put(uint32(3))
	put(uint64(len(c.Tensors)))
	put(uint64(len(about)))
	for k, v := range about {
		text(k)
		value(v, true)
	}
	for _, x := range c.Tensors {
		name, kind := x[0].(string), x[2].(string)
		var shape []int
		for _, n := range x[1].([]any) {
			shape = append(shape, int(n.(float64)))
		}
		text(name)
		put(uint32(len(shape)))
		for _, n := range slices.Backward(shape) {
			put(uint64(n))
		}
		put(ggufKinds[kind].number)
		put(uint64(data.Len()))
		data.Write(ggufData(name, shape, kind))
		data.Write(make([]byte, -data.Len()&31))
	}
	head.Write(make([]byte, -head.Len()&31))
	return append(head.Bytes(), data.Bytes()...)
}

func readGGUFCase(t *testing.T, name string) *ggufCase {
	raw, err := os.ReadFile(filepath.Join("testdata/lm/gguf", name+".json"))
	require.NoError(t, err)
	c := &ggufCase{}
	require.NoError(t, json.Unmarshal(raw, c))
	return c
}

// Models in GGUF files, of all types of elements and architectures, answer as transformers does, which has them
// unpacked by llama.cpp's Python package. Types that are kept as float16 here differ by its rounding.
func TestModelsOfGGUF(t *testing.T) {
	t.Parallel()
	names := goldenModels(t, "gguf")
	if testing.Short() {
		names = []string{"Q4_0", "gemma3", "phi3_long", "stablelm"}
	}
	dir := t.TempDir()
	more := map[string]map[string]any{ // llama.cpp writes it where config.json does not say it
		"stablelm": {"stablelm.use_parallel_residual": true},
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name+".gguf")
			require.NoError(t, os.WriteFile(file, readGGUFCase(t, name).bytes(t, more[name]), 0o644))
			bound := 2e-5
			if strings.HasPrefix(name, "Q5") || strings.HasSuffix(name, "_K") {
				bound = 1e-3
			}
			s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
			defer s.Close()
			_, err := s.Run(t.Context(), strings.NewReader(`
				local mx, lm = require("mx"), require("lm")
				local file, golden, bound, dir = ...
				local want = mx.load(golden).logits
				local tokens = mx.array({{3, 41, 12, 60, 33, 9, 27}}, mx.int32)
				local function check(model)
					local d = mx.max(mx.abs(model(tokens, lm.caches(model))[0] - want)):item()
					assert(d <= tonumber(bound), ("off by %g"):format(d))
				end
				local model = lm.load(file, {dtype = mx.float32})
				check(model)
				lm.save(model, dir)
				check(lm.load(dir))`), "gguf.lua", lua.LString(file), lua.LString("testdata/lm/gguf/"+name+".safetensors"),
				lua.LString(fmt.Sprint(bound)), lua.LString(filepath.Join(dir, name)))
			require.NoError(t, err)
		})
	}
}

// A .gguf file answers with its own tokenizer and chat template, and what is converted from it says the same.
func TestTextOfGGUF(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "whole.gguf")
	tokens, types := []any{"<unk>", "<s>", "</s>"}, []any{int32(2), int32(3), int32(3)}
	scores, pieces := []any{float32(0), float32(0), float32(0)},
		"▁ h e l o t r y w a ▁h ▁he ▁hel lo ▁hello ▁t ▁th ▁the ▁ther ▁there s i n g d m c k"
	for i, piece := range strings.Split(pieces, " ") {
		if slices.Contains(tokens, any(piece)) {
			piece = fmt.Sprint("#", i)
		}
		tokens, types, scores = append(tokens, piece), append(types, int32(1)), append(scores, float32(-i))
	}
	for len(tokens) < 64 {
		tokens = append(tokens, fmt.Sprintf("<0x%02X>", len(tokens)))
		types, scores = append(types, int32(6)), append(scores, float32(0))
	}
	require.NoError(t, os.WriteFile(file, readGGUFCase(t, "Q4_0").bytes(t, map[string]any{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.scores": scores, "tokenizer.ggml.bos_token_id": int32(1), "tokenizer.ggml.eos_token_id": int32(2),
		"tokenizer.ggml.unknown_token_id": int32(0), "tokenizer.ggml.add_bos_token": true,
		"tokenizer.chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
	}), 0o644))
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	_, err := s.Run(t.Context(), strings.NewReader(`
		local lm = require("lm")
		local file, dir = ...
		local function said(session)
			local prompt, out = session:conversation{{role = "user", content = "hello there"}}, {}
			assert(#prompt == 3 and prompt[1] == 1, table.concat(prompt, " "))
			assert(table.concat(prompt, " ") == table.concat(session:tokens("hello there"), " "))
			for piece in session:answer(prompt, {max_tokens = 8}) do out[#out + 1] = piece end
			return table.concat(out)
		end
		local session = lm.open(file)
		assert(session.ends[2])
		local text = said(session)
		assert(#text > 0)
		lm.save(session.model, dir)
		assert(said(lm.open(dir)) == text)
		assert(said(lm.open(session.model, dir)) == text)
		lm.save(lm.load(dir), dir .. 2, {tokenizer = file})
		assert(said(lm.open(dir .. 2)) == text)`), "text.lua", lua.LString(file),
		lua.LString(filepath.Join(dir, "converted")))
	require.NoError(t, err)
}

// A StableLM without the second norm of a layer has its parts beside each other.
func TestParallelModelOfGGUF(t *testing.T) {
	t.Parallel()
	c := readGGUFCase(t, "stablelm")
	c.Tensors = slices.DeleteFunc(c.Tensors, func(x [3]any) bool { return strings.Contains(x[0].(string), "ffn_norm") })
	file := filepath.Join(t.TempDir(), "parallel.gguf")
	require.NoError(t, os.WriteFile(file, c.bytes(t, nil), 0o644))
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	_, err := s.Run(t.Context(), strings.NewReader(`
		local model = require("lm").load(...)
		assert(model.config:get("use_parallel_residual") == true)`), "parallel.lua", lua.LString(file))
	require.NoError(t, err)
}

// A model whose tokenizer is not built is not saved without one, but with another. What lies beside a directory that is
// written stays.
func TestSaveOfGGUFWithAnotherTokenizer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "odd.gguf")
	require.NoError(t, os.WriteFile(file, readGGUFCase(t, "olmo2").bytes(t, map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "odd-pre", "tokenizer.ggml.tokens": []any{"a", "b"},
	}), 0o644))
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	_, err := s.Run(t.Context(), strings.NewReader(`
		local lm, host = require("lm"), require("lm.host")
		local file, dir, tokenizer = ...
		assert(host.mkdir(dir .. ".begun") and host.write(dir .. ".begun/mine", "x"))
		local model = lm.load(file)
		local ok, why = pcall(lm.save, model, dir)
		assert(not ok and why:find("tokenizer.ggml.pre = \"odd-pre\" is not built", 1, true), why)
		assert(not host.kind(dir))
		ok, why = pcall(lm.save, model, dir, {tokenizer = file .. "x"})
		assert(not ok and not host.kind(dir))
		lm.save(model, dir, {tokenizer = tokenizer})
		assert(#lm.open(dir):tokens("hello") > 0)
		assert(host.read(dir .. ".begun/mine") == "x")`), "odd.lua", lua.LString(file),
		lua.LString(filepath.Join(dir, "saved")), lua.LString(tokenizerDirectory(t)))
	require.NoError(t, err)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 3) // the file, the directory, and what was there
}
