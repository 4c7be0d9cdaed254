package amd64

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

var update = flag.Bool("update", false, "have GNU as write testdata/golden.txt anew")

const goldenHead = "# What GNU as makes of each instruction: go test ./metal/jit/amd64 -run Golden -update\n"

// Registers for the n-th variant: low, high (VEX), upper (EVEX).
var (
	goldenG = [4][3]code.R{{code.RAX, code.RCX, code.RDX}, {code.RSI, code.RBP, code.RDI},
		{code.R8, code.R15, code.R10}, {code.R9, code.RBX, code.R13}}
	goldenV = [4][3]code.R{{code.V(0), code.V(1), code.V(2)}, {code.V(3), code.V(12), code.V(5)},
		{code.V(9), code.V(6), code.V(15)},
		{code.V(17), code.V(30), code.V(24)}}
	// Addresses: each base with a quirk, each size of displacement, indices.
	goldenM = []code.Mem{{Base: code.RAX}, {Base: code.RBP, Disp: 64}, {Base: code.R13, Index: code.RSI, Scale: 4},
		{Base: code.RSP, Disp: 1024}, {Base: code.R12, Disp: -128}, {Base: code.RBX, Index: code.R9, Scale: 8, Disp: 4096},
		{Base: code.R12}, {Base: code.R13}, {Index: code.RCX, Scale: 2, Disp: 33}, {Base: code.R8, Disp: -8}}
)

// goldens lists the instructions of the golden file.
func goldens() []code.Inst {
	var out []code.Inst
	for op := code.NoOpcode + 1; op < code.NumOpcodes; op++ {
		switch f := rowOf(op).form; {
		case f < formKMov:
			out = append(out, goldenVector(op)...)
		case f < formALU:
			out = append(out, goldenMask(op)...)
		case f != formPseudo && f != formJcc:
			out = append(out, goldenGeneral(op)...)
		}
	}
	return out
}

// goldenVector varies registers, addresses, widths, masks and broadcasts.
func goldenVector(op code.Opcode) []code.Inst {
	r := rowOf(op)
	var out []code.Inst
	if r.form == formZero {
		return []code.Inst{{Op: op}}
	}
	for n := range 8 {
		i := code.Inst{Op: op, Imm: int64(int(op)*7+n) & 31}
		evex := r.enc&vexOnly == 0
		set := n & 3
		if set == 3 && !evex {
			set = 1
		}
		mem := n >= 4
		i.W = []uint8{16, 32, 64, 32, 32, 64, 16, 64}[n]
		switch {
		case r.enc&lig != 0:
			i.W = 16
		case r.enc&only64 != 0:
			i.W = 64
		case !evex && i.W == 64:
			i.W = 32
		}
		if r.enc&min32 != 0 && i.W == 16 {
			i.W = 32
		}
		dst, a, b := goldenV[set][0], goldenV[set][1], goldenV[set][2]
		g := goldenG[set][1]
		if r.enc&dG != 0 {
			dst = g
		}
		if r.enc&dK != 0 {
			dst = code.K(n&3 + 2)
		}
		maskable := r.maskable()
		if mem {
			i.Mem = goldenM[(int(op)+n)%len(goldenM)]
			if n == 6 {
				i.Mem.Bcast = r.enc.bcast() != 0
			}
		}
		out = append(out, goldenPlace(i, r, n, dst, a, b, g, maskable)...)
	}
	return out
}

// goldenPlace puts operands where the form wants them; it returns nothing if the variant makes no sense.
func goldenPlace(i code.Inst, r *row, n int, dst, a, b, g code.R, maskable bool) []code.Inst {
	mem := i.Mem.Valid()
	if maskable && (n == 2 || n == 3 || n == 5) {
		i.KM = code.K(n)
		i.Zero = n == 3
	}
	if r.enc&memOnly != 0 && !mem {
		return nil
	}
	switch r.form {
	case formRM, formRMI:
		i.Dst, i.A = dst, a
		if r.enc&aG != 0 {
			i.A = g
		}
		if mem {
			i.A = 0
			if r.enc&regOnly != 0 {
				return nil
			}
		}
	case formRVM, formRVMI, formTVM, formTVMI, formRVMR:
		i.Dst, i.A, i.B = dst, a, b
		if r.form == formRVMR {
			i.C = goldenV[(n+1)%3][2]
		}
		if mem {
			i.B = 0
		}
	case formMR, formMRI:
		i.Dst, i.A = b, a
		if r.enc&dG != 0 {
			i.Dst = g
		}
		if mem {
			i.Dst = 0
			i.Zero = false
		}
	case formMov:
		i.Dst, i.A = dst, b
		if mem && n&1 == 0 {
			i.A = 0
		} else if mem {
			i.Dst, i.Zero = 0, false
		}
	case formMovDQ:
		return goldenMovDQ(i, n, dst, g)
	case formShift:
		i.Dst, i.A, i.B = dst, a, b
		switch {
		case mem && (r.op == 0 || n == 6):
			if r.enc&vexOnly != 0 {
				return nil
			}
			i.A, i.B, i.Mem.Bcast = 0, 0, i.Mem.Bcast && r.enc.bcast() != 0
		case mem:
			i.B = 0
		case r.op == 0 || n&1 == 0:
			i.B = 0
		}
	case formMVR:
		i.A, i.B = a, b
	case formAB:
		i.A, i.B = a, b
		if mem {
			i.B = 0
		}
	case formGV, formGK, formSK:
		if !mem {
			return nil
		}
		if i.Mem.Base == 0 {
			i.Mem.Base = code.R11
		}
		i.Mem.Bcast = false
		i.Mem.Index, i.Mem.Scale = a, 4
		i.Zero = false
		switch r.form {
		case formGV:
			i.Dst, i.A = dst, b
		case formGK:
			i.Dst, i.KM = dst, code.K(n-1)
		default:
			i.A, i.KM = dst, code.K(n-1)
		}
	}
	return []code.Inst{i}
}

func goldenMovDQ(i code.Inst, n int, dst, g code.R) []code.Inst {
	switch {
	case n < 4 && i.Op == code.VMovQ && n&1 == 1:
		i.Dst, i.A = dst, goldenV[2][0]
	case n < 2:
		i.Dst, i.A = dst, g
	case n < 4:
		i.Dst, i.A = g, dst
	case n&1 == 0:
		i.Dst = dst
	default:
		i.A = dst
	}
	return []code.Inst{i}
}

func goldenMask(op code.Opcode) []code.Inst {
	r := rowOf(op)
	var out []code.Inst
	for n, w := range []uint8{1, 2, 4, 8} {
		i := code.Inst{Op: op, W: w}
		switch r.form {
		case formK3:
			if op == code.KUnpck && w == 1 {
				continue
			}
			i.Dst, i.A, i.B = code.K(n+1), code.K(n+2), code.K(7-n)
		case formK2:
			i.Dst, i.A = code.K(n+1), code.K(n+3)
		case formKTest:
			i.A, i.B = code.K(n+1), code.K(n+3)
		case formKI:
			i.Dst, i.A, i.Imm = code.K(n+1), code.K(n+3), int64(n*2+1)
		case formKMov:
			m := goldenM[n*2+1]
			out = append(out, code.Inst{Op: op, W: w, Dst: code.K(1), A: code.K(2 + n)},
				code.Inst{Op: op, W: w, Dst: code.K(3), A: code.R9},
				code.Inst{Op: op, W: w, Dst: code.K(3), A: code.RCX}, code.Inst{Op: op, W: w, Dst: code.R14, A: code.K(5)},
				code.Inst{Op: op, W: w, Dst: code.RDI, A: code.K(5)}, code.Inst{Op: op, W: w, Dst: code.K(6), Mem: m},
				code.Inst{Op: op, W: w, A: code.K(7), Mem: m}, code.Inst{Op: op, W: w, A: code.K(7), Mem: goldenM[2]})
			continue
		}
		out = append(out, i)
	}
	return out
}

// goldenGeneral varies the operands of general instructions.
func goldenGeneral(op code.Opcode) []code.Inst {
	r := rowOf(op)
	var out []code.Inst
	widths := []uint8{1, 2, 4, 8}
	switch r.form {
	case formExt, formLea, formBMI, formBMIV, formBMI1, formSwap, formG0, formX87:
		widths = []uint8{4, 8}
	case formG2, formT2, formG2I, formCMov:
		widths = []uint8{2, 4, 8}
	case formSet, formPref, formBytes:
		widths = []uint8{1}
	case formJmp:
		widths = []uint8{8}
	}
	if op == code.MovSXD {
		widths = []uint8{8}
	}
	imms := []int64{1, -1, 5, 127, 0x1234, -0x4321, 0x12345678}
	for k, w := range widths {
		for n, set := range goldenG {
			d, a, b := set[0], set[1], set[2]
			m := goldenM[(int(op)*3+k*4+n)%len(goldenM)]
			c := code.Cond((int(op) + 4*k + n) & 15)
			imm := imms[(n*2+k)%len(imms)]
			if w == 1 {
				imm = int64(int8(imm))
			}
			if w == 2 {
				imm = int64(int16(imm))
			}
			i := func(i code.Inst) {
				i.Op, i.W, i.Cond = op, w, c
				out = append(out, i)
			}
			switch r.form {
			case formALU:
				i(code.Inst{Dst: d, A: a})
				i(code.Inst{Dst: d, Imm: imm})
				i([]code.Inst{{Dst: a, Mem: m}, {A: a, Mem: m}, {Mem: m, Imm: imm}, {Dst: b, Mem: m}}[n])
			case formCmp, formTest:
				i(code.Inst{A: d, B: a})
				i(code.Inst{A: d, Imm: imm})
				i([]code.Inst{{B: a, Mem: m}, {A: a, Mem: m}, {Mem: m, Imm: imm}, {B: b, Mem: m}}[n])
				if r.form == formTest && out[len(out)-1].A != 0 {
					out = out[:len(out)-1]
				}
			case formGMov:
				i(code.Inst{Dst: d, A: a})
				i(code.Inst{Dst: d, Imm: imm})
				i([]code.Inst{{Dst: a, Mem: m}, {A: a, Mem: m}, {Mem: m, Imm: imm}, {Dst: b, Mem: m}}[n])
				if w == 8 {
					i(code.Inst{Dst: b, Imm: 0x123456789abc})
					i(code.Inst{Dst: b, Imm: 0x89abcdef})
				}
			case formExt, formG2, formT2, formCMov, formBMI1:
				i(code.Inst{Dst: d, A: a})
				i(code.Inst{Dst: b, Mem: m})
			case formG2I:
				i(code.Inst{Dst: d, A: a, Imm: imm})
				i(code.Inst{Dst: b, Mem: m, Imm: imm})
			case formLea:
				i(code.Inst{Dst: d, Mem: m})
			case formUn:
				i([]code.Inst{{Dst: a}, {Mem: m}, {Dst: d}, {Dst: b}}[n])
			case formMul:
				i([]code.Inst{{A: a}, {Mem: m}, {A: d}, {A: b}}[n])
			case formGSh:
				i([]code.Inst{{Dst: d, A: code.RCX}, {Dst: a, Imm: 5}, {Dst: d, Imm: 1}, {Mem: m, Imm: 3}}[n])
			case formBMI:
				i(code.Inst{Dst: d, A: a, B: b})
				i(code.Inst{Dst: d, Mem: m, B: b})
			case formBMIV:
				i(code.Inst{Dst: d, A: a, B: b})
				i(code.Inst{Dst: d, A: b, Mem: m})
			case formSwap:
				i(code.Inst{Dst: d})
			case formSet:
				i(code.Inst{Dst: d})
				i(code.Inst{Dst: a})
				i(code.Inst{Mem: m})
			case formXchg:
				i(code.Inst{Dst: d, Mem: m})
				if n > 0 {
					i(code.Inst{Dst: d, A: b})
				}
			case formLockR:
				i(code.Inst{Dst: d, Mem: m})
			case formLockA:
				i(code.Inst{A: d, Mem: m})
			case formLock:
				i([]code.Inst{{A: d, Mem: m}, {Imm: imm, Mem: m}, {A: a, Mem: m}, {Imm: imm, Mem: m}}[n])
			case formJmp:
				i([]code.Inst{{A: d}, {Mem: m}, {A: a}, {Mem: m}}[n])
			case formX87, formPref:
				i(code.Inst{Mem: m})
			case formBytes, formG0:
				if n == 0 {
					i(code.Inst{})
				}
			}
		}
	}
	return out
}

// assembleOne returns the bytes of one instruction.
func assembleOne(i code.Inst) ([]byte, error) {
	f := NewProgram()
	f.Emit(i)
	c, err := f.Assemble(AVX512)
	return c.Bytes, err
}

// gnu runs the text through GNU as and returns the bytes of each line.
func gnu(t *testing.T, lines []string) []string {
	dir := t.TempDir()
	src, lst := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.lst")
	text := ".intel_syntax noprefix\n" + strings.Join(lines, "\n") + "\n"
	require.NoError(t, os.WriteFile(src, []byte(text), 0o644))
	cmd := exec.Command("as", "--64", "-aln="+lst, "--listing-lhs-width=8", "-o", filepath.Join(dir, "a.o"), src)
	if msg, err := cmd.CombinedOutput(); err != nil {
		for _, m := range regexp.MustCompile(`a\.s:(\d+): Error.*`).FindAllSubmatch(msg, 60) {
			n := 0
			for _, c := range m[1] {
				n = n*10 + int(c-'0')
			}
			t.Logf("%s | %s", m[0], lines[n-2])
		}
		t.FailNow()
	}
	list, err := os.ReadFile(lst)
	require.NoError(t, err)
	out := make([]string, len(lines))
	n := -1
	for _, m := range regexp.MustCompile(`(?m)^ *\d+ [0-9a-f]{4} ([0-9A-F ]+?) *\t`).FindAllSubmatch(list, -1) {
		n++
		out[n] = strings.ToLower(strings.ReplaceAll(string(m[1]), " ", ""))
	}
	require.Equal(t, len(lines)-1, n, "lines of the listing")
	return out
}

// TestGolden compares the encoder, and the printer, with GNU as.
func TestGolden(t *testing.T) {
	file := filepath.Join("testdata", "golden.txt")
	insts := goldens()
	var lines []string
	for k := range insts {
		lines = append(lines, text(&insts[k]))
	}
	if *update {
		var b bytes.Buffer
		b.WriteString(goldenHead)
		for n, h := range gnu(t, lines) {
			b.WriteString(h + "\t" + lines[n] + "\n")
		}
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want := strings.Split(strings.TrimSuffix(strings.TrimPrefix(string(text), goldenHead), "\n"), "\n")
	require.Len(t, want, len(insts), "run with -update")
	bad := 0
	for k := range insts {
		b, err := assembleOne(insts[k])
		got := hex.EncodeToString(b) + "\t" + lines[k]
		if err != nil || got != want[k] {
			t.Errorf("got %s (%v), GNU as makes %s", got, err, want[k])
			if bad++; bad > 60 {
				t.FailNow()
			}
		}
	}
}
