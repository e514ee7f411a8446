package scenarios

import (
	"testing"

	"go.uber.org/goleak"
)

// A night runs many scenarios in one process: none may leave a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
