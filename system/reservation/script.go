package reservation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/redis/go-redis/v9"
)

// BatchMax is how many requests one script call may judge: Redis serves
// nobody else meanwhile (32 take about 0.45 ms).
const BatchMax = 32

// script is a Lua script under the digest Redis knows it by.
type script struct {
	name string
	*redis.Script
}

func loadScript(files fs.FS, name string) (script, error) {
	body, err := fs.ReadFile(files, name)
	if err != nil {
		return script{}, fmt.Errorf("load script %s: %w", name, err)
	}
	return script{name, redis.NewScript(string(body))}, nil
}

// run calls the script by digest. A Redis that does not know it (it was
// restarted) has run nothing, so sending the text then repeats nothing.
func (s script) run(ctx context.Context, rdb redis.Scripter, keys []string, args []any) *redis.Cmd {
	cmd := s.EvalSha(ctx, rdb, keys, args...)
	if err := cmd.Err(); err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.Eval(ctx, rdb, keys, args...)
	}
	return cmd
}

// ErrUnavailable wraps every failure after which it is not known what Redis
// did: connection, timeout. The caller fails closed and releases nothing.
var ErrUnavailable = errors.New("redis unavailable")

// ErrRejected wraps a reply that is an error: the script or command did not run.
var ErrRejected = errors.New("redis rejected the command")

func wrap(op string, err error) error {
	var replied redis.Error
	if errors.As(err, &replied) && (redis.HasErrorPrefix(err, "WRONGTYPE") || strings.Contains(replied.Error(), "value is not an integer")) {
		return fmt.Errorf("%s: %w: %w: %w", op, ErrRejected, ErrUnreadable, err)
	}
	if errors.As(err, &replied) && !strings.HasPrefix(replied.Error(), "LOADING") {
		return fmt.Errorf("%s: %w: %w", op, ErrRejected, err)
	}
	return fmt.Errorf("%s: %w: %w", op, ErrUnavailable, err)
}
