package wirings

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hotsku/hotsku/scenarios/mutants"
)

// firingsMax bounds the firings one process notes: that there are some is
// what counts.
const firingsMax = 1000

// NoteIn returns a Fire that appends to a file, for the process's life.
func NoteIn(path, name string) (Fire, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open firings: %w", err)
	}
	var mu sync.Mutex
	noted := 0
	return func(activityID int64, what string) {
		mu.Lock()
		defer mu.Unlock()
		if noted == firingsMax {
			return
		}
		noted++
		line, err := json.Marshal(mutants.Firing{Mutant: name, ActivityID: activityID, PID: os.Getpid(), What: what, At: time.Now().UTC().Format(time.RFC3339Nano)})
		if err == nil {
			_, err = f.Write(append(line, '\n')) // one write a line: several processes append
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "seckill-mutant: a firing was not noted:", err)
		}
	}, nil
}
