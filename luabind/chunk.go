package luabind

import (
	"context"
	"io"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// Chunk is compiled source text. It is for any number of states, also at once.
type Chunk struct{ proto *lua.FunctionProto }

// CompileChunk compiles source text; name stands in messages. The error is a *ScriptError.
func CompileChunk(ctx context.Context, src io.Reader, name string) (*Chunk, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	src, err := lua51.WithoutShebang(src)
	if err != nil {
		return nil, &ScriptError{Message: "cannot read " + name + ": " + err.Error(), Cause: err}
	}
	proto, err := lua51.CompileShared(ctx, src, name, sureModule, syntaxHint)
	if err != nil {
		return nil, syntaxFailure(err)
	}
	return &Chunk{proto}, nil
}

// RunChunk is Run of a text that is compiled.
func RunChunk(ctx context.Context, s *State, c *Chunk, args ...lua.LValue) ([]lua.LValue, error) {
	if err := s.life.enter(ctx); err != nil {
		return nil, err
	}
	defer s.life.leave()
	return s.Call(ctx, s.L.NewFunctionFromProto(c.proto), args...)
}

// Seed has the state's random numbers, those of math.random too, begin with those of a seed, as Options.Seed does.
func Seed(s *State, seed uint64) error {
	if err := s.life.enter(context.Background()); err != nil {
		return err
	}
	defer s.life.leave()
	s.random.Seed(seed)
	lua51.Seed(s.State, seed)
	return nil
}

// SetOutput has the state's print write to w.
func SetOutput(s *State, w io.Writer) error {
	if err := s.life.enter(context.Background()); err != nil {
		return err
	}
	defer s.life.leave()
	lua51.SetOutput(s.State, w)
	return nil
}
