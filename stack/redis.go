package stack

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/hotsku/hotsku/stack/proc"
)

func newRedis(l layout, record recordFunc) *native {
	dir := l.folder(RedisName)
	conf := filepath.Join(dir, "redis.conf")
	addr := loopback(l.ports.Redis)
	return &native{
		name: RedisName, addr: addr, record: record, stopSignal: syscall.SIGTERM, stopGrace: stopGrace,
		prepare: func(context.Context) error {
			if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
				return err
			}
			return render("redis.conf.tmpl", conf, struct {
				Name string
				Port int
				Dir  string
			}{l.name, l.ports.Redis, filepath.Join(dir, "data")})
		},
		spec: func() proc.Spec {
			return proc.Spec{Name: RedisName, Path: l.binaries.RedisServer, Args: []string{conf},
				Dir: dir, LogPath: l.log(RedisName), Nice: l.nice[RedisName], Detached: l.detached}
		},
		answers: func(ctx context.Context, _ *proc.Process) error { return pingRedis(ctx, addr) },
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// pingRedis speaks three lines of the protocol itself: a client with a pool and retries would be in the way.
func pingRedis(ctx context.Context, addr string) error {
	conn, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if line != "+PONG\r\n" { // "-LOADING ..." while the append-only file is read
		return fmt.Errorf("PING answered %q", line)
	}
	return nil
}
