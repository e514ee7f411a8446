package proc

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Spec says what to run. Name, Path and LogPath are required.
type Spec struct {
	// Name is for messages: "redis", "access-1".
	Name string
	// Path is the binary, found in PATH if it holds no slash; Args follow argv[0].
	Path string
	Args []string
	// Env is the whole environment; nil inherits the parent's.
	Env []string
	// Dir is the working directory; empty means the parent's.
	Dir string
	// LogPath is appended to by the child's stdout and stderr. Its folder must exist.
	LogPath string
	// Ready, if set, is called with each line of stdout (without its newline, valid during the call)
	// until it returns true: the process is then ready. Lines reach the log all the same.
	// A nil Ready means ready as soon as started. Not allowed with Detached, whose output no one reads.
	Ready func(line []byte) bool
	// Credential, if set, is the user the child runs as; only root may.
	Credential *syscall.Credential
	// Nice is added to the parent's niceness, 0 to 19: what the child gives way to others. It is set before
	// the program starts, so that every thread of it has it, and given to the sessions that its children begin.
	Nice int
	// Detached lets the child outlive its parent, in its own session.
	Detached bool
	// ParentDeath is the signal for a child whose parent died; zero means SIGKILL.
	ParentDeath syscall.Signal
}

// Validate reports the first thing wrong with the Spec.
func (s Spec) Validate() error {
	switch {
	case s.Name == "":
		return errors.New("proc: Spec.Name is empty")
	case s.Path == "":
		return fmt.Errorf("proc: %s: Spec.Path is empty", s.Name)
	case s.LogPath == "":
		return fmt.Errorf("proc: %s: Spec.LogPath is empty", s.Name)
	case s.Nice < 0 || s.Nice > 19:
		return fmt.Errorf("proc: %s: niceness %d: must be 0 to 19", s.Name, s.Nice)
	case s.Detached && s.Ready != nil:
		return fmt.Errorf("proc: %s: a detached process cannot have a Ready callback", s.Name)
	}
	return nil
}

// ExitState says how a process ended.
type ExitState struct {
	// Code is the exit code, -1 if a signal ended the process or the code is not known (an attached
	// process is not our child).
	Code int
	// Signal is the signal that ended it, 0 if none.
	Signal syscall.Signal
	// User and System are the CPU time of the process and of the descendants it waited for.
	User, System time.Duration
	// MaxRSSBytes is the peak resident set of the process.
	MaxRSSBytes int64
}

// String is "exit code 3" or "signal: killed".
func (e ExitState) String() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	if e.Code < 0 {
		return "unknown exit code"
	}
	return fmt.Sprintf("exit code %d", e.Code)
}
