package amd64

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// TestTraitsAreThoseOfTheForms: what package code says that instructions do with their operands is what the processor's
// encodings of them do.
func TestTraitsAreThoseOfTheForms(t *testing.T) {
	k, g := code.K(1), code.RAX
	for op := code.Opcode(1); op < code.NumOpcodes; op++ {
		r := rowOf(op)
		tied, writesA, writesK, stores, storesIf := false, false, false, false, false
		switch r.form {
		case formTVM, formTVMI, formT2, formSwap, formCMov:
			tied = true
		case formGV:
			tied, writesA = true, true
		case formGK:
			tied, writesK = true, true
		case formALU, formUn, formGSh, formSet:
			tied, storesIf = true, true
		case formXchg:
			tied, writesA, stores = true, true, true
		case formLockR:
			tied, stores = true, true
		case formLock, formLockA, formMR, formMRI, formMVR:
			stores = true
		case formSK:
			writesK, stores = true, true
		case formMov, formMovDQ, formKMov, formGMov:
			storesIf = true
		case formX87:
			stores = r.ext != 0
		}
		role := func(b bool, other code.Role) code.Role {
			if b {
				return code.UseDef
			}
			return other
		}
		i := code.Inst{Op: op, W: 8, Dst: g, A: g, Mem: code.Mem{Base: g}}
		require.Equal(t, role(tied, code.Def), i.DstRole(), r.name)
		require.Equal(t, role(writesA, code.Use), i.ARole(), r.name)
		require.Equal(t, role(writesK, code.Use), i.MaskRole(), r.name)
		require.Equal(t, stores, i.Store(), r.name)
		require.Equal(t, r.enc&early != 0, i.EarlyDef(), r.name)
		require.Equal(t, r.form == formPseudo, op.Pseudo(), r.name)
		i.Dst = 0
		require.Equal(t, stores || storesIf, i.Store(), r.name)
		i = code.Inst{Op: op, W: 64, Dst: code.V(0), KM: k}
		require.Equal(t, role(tied || r.enc&(sel|dK) == 0, code.Def), i.DstRole(), r.name)
	}
}
