package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSharedMemoryIsFreedOnlyIfTheNamedProcessCreatedIt(t *testing.T) {
	self := os.Getpid()
	for _, c := range []struct {
		name     string
		pid, key int
		freed    bool
	}{
		{"a postmaster's", self, 0, true},
		{"initdb's single process's", -self, 0, true},
		{"another process's", self + 1, 0, false},
		{"one of another key", self, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 64, unix.IPC_CREAT|0o600)
			if err != nil {
				t.Fatal(err)
			}
			data := t.TempDir()
			file := fmt.Sprintf("%d\n%s\n1\n5432\n\n127.0.0.1\n%9d %9d\nready   \n", c.pid, data, c.key, id)
			if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := freeSharedMemory(data); err != nil {
				t.Error(err)
			}
			_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			if freed := errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIDRM); freed != c.freed {
				t.Errorf("freed is %v (%v), want %v", freed, err, c.freed)
			}
		})
	}
}
