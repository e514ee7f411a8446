package reservation

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// AfterCommand calls f after every command of that name, before its caller goes on.
func (s *Store) AfterCommand(name string, f func()) { s.rdb.AddHook(afterCommand{name, f}) }

type afterCommand struct {
	name string
	f    func()
}

func (afterCommand) DialHook(next redis.DialHook) redis.DialHook { return next }

func (afterCommand) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a afterCommand) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == a.name {
			a.f()
		}
		return err
	}
}
