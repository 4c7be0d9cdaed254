package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/apple/fake"
)

// asCheck has the test binary make a check, as the doctor's processes do, on a Metal without a Mac.
const asCheck = "MLXLUA_TEST_DOCTOR"

// openFake opens that.
func openFake() (metal.Driver, error) { return apple.New(fake.New(fake.M1)) }

// checkInTest makes a check of the doctor's, or one that ends as no check should.
func checkInTest(name string) int {
	switch name {
	case "endless":
		time.Sleep(time.Hour)
	case "abort":
		os.Exit(134)
	case "validated":
		if os.Getenv("MTL_SHADER_VALIDATION") == "1" {
			return 0
		}
		return 1
	}
	return runCheck(name, openFake, os.Stdout)
}

func testProcess(ctx context.Context, name string) (*exec.Cmd, error) {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), asCheck+"="+name)
	return c, nil
}

// TestDoctorMetal: the checks run in processes of their own; what fails, hangs or ends with a crash is a line of the
// report, and only a device that passes all is trusted.
func TestDoctorMetal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.txt")
	var trusted *metal.Info
	distrusted := 0
	doctor := func(checks []check) (int, string) {
		trusted, distrusted = nil, 0
		var out strings.Builder
		status := doctorAll(&out, checks, testProcess, file, func(i metal.Info) error {
			trusted = &i
			return nil
		}, func() error {
			distrusted++
			return nil
		})
		report, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(report), "built with")
		return status, out.String() + string(report)
	}
	find := func(names ...string) (some []check) {
		for _, name := range names {
			for _, c := range metalChecks() {
				if c.name == name {
					some = append(some, c)
				}
			}
		}
		require.Len(t, some, len(names))
		return some
	}
	good := find("open", "driver: dispatch", "driver: gates", "operations, without validation")
	status, said := doctor(append(good, check{name: "validated", limit: time.Minute}))
	require.Equal(t, 0, status, said)
	require.Equal(t, "Apple M1", trusted.Name)
	require.Equal(t, "apple-1, macOS 15.1, applegpu_g13g, MSL 3.1", trusted.Version)
	require.Contains(t, said, "all checks passed")
	require.Contains(t, said, "softmax of bfloat16")
	require.NotContains(t, said, "FAILED")

	status, said = doctor(append(good[:1:1], check{name: "abort", limit: time.Minute},
		check{name: "endless", limit: 200 * time.Millisecond}, check{name: "driver: nonsense", limit: time.Minute}))
	require.Equal(t, 1, status)
	require.Nil(t, trusted)
	require.Equal(t, 1, distrusted)
	require.Contains(t, said, "exit status 134")
	require.Contains(t, said, "not done after 200ms")
	require.Contains(t, said, `there is no check "driver: nonsense"`)
	require.Contains(t, said, "3 checks FAILED")
}

// TestDoctorSpeed: the table has a line for each of what is measured.
func TestDoctorSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("it moves much memory")
	}
	c, err := testProcess(t.Context(), "speed")
	require.NoError(t, err)
	table, err := c.CombinedOutput()
	require.NoError(t, err, string(table))
	for _, x := range speeds {
		require.Contains(t, string(table), x.name)
	}
}
