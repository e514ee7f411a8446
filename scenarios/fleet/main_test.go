package fleet

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotsku/hotsku/stack"
	"github.com/hotsku/hotsku/system/seckill"
)

// playEnv makes the test binary play the product: `BINARY KIND --play PART …`.
const playEnv = "HOTSKU_FLEET_TEST_PLAY"

func TestMain(m *testing.M) {
	if os.Getenv(playEnv) != "" {
		os.Exit(play(os.Args))
	}
	os.Setenv(playEnv, "1") // for the processes it starts
	goleak.VerifyTestMain(m)
}

// play is a role of the product that does nothing but what a part says.
func play(args []string) int {
	f := flag.NewFlagSet(args[1], flag.ContinueOnError)
	part := f.String("play", "serve", "")
	listen := f.String("listen", "", "")
	f.String("admin", "", "")
	f.String("id-seed", "", "")
	f.String("faultpoint", "", "")
	f.String("faultpoint-file", "", "")
	if f.Parse(args[2:]) != nil {
		return 64
	}
	fmt.Println("started", filepath.Base(args[0]), args[1:], os.Getenv("SECKILL_REDIS"), os.Getenv("SECKILL_TOKEN_KEY"))
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	if path, needs := strings.CutPrefix(*part, "needs:"); needs {
		if _, err := os.Stat(path); err != nil {
			return 2
		}
	}
	switch *part {
	case "die":
		fmt.Fprintln(os.Stderr, "seckill: connecting")
		fmt.Fprintln(os.Stderr, "seckill: redis 127.0.0.1:1 refused the connection")
		return 2
	case "mute":
		<-terms
		return 0
	case "hang":
		select {}
	case "burn":
		for end := time.Now().Add(5 * time.Second); cpu() < 100*time.Millisecond && time.Now().Before(end); {
		}
	}
	ready := seckill.Ready{Role: args[1], PID: os.Getpid()}
	if *listen != "" {
		l, err := net.Listen("tcp", *listen)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		ready.Listen = l.Addr().String()
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ready.Admin = admin.Addr().String()
	go http.Serve(admin, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if *part == "broken" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "# TYPE seckill_requests_total counter\nseckill_requests_total{code=\"QUEUED\"} 3\nseckill_requests_total{code=\"SOLD_OUT\"} 39\n")
	}))
	if json.NewEncoder(os.Stdout).Encode(ready) != nil {
		return 2
	}
	<-terms
	if *part == "stubborn" {
		select {}
	}
	return 0
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// product is a folder with the product's binaries, both this test's.
func product(t *testing.T) Binaries {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"seckill", "seckill-chaos"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := FindBinaries(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newFleet(t *testing.T, change func(*Config)) *Fleet {
	t.Helper()
	cfg := Config{Binaries: product(t), Addresses: stack.Addresses{Redis: "127.0.0.1:6"}, TokenKey: "k:00", LogDir: filepath.Join(t.TempDir(), "logs"),
		Seed: 7, StartTimeout: time.Minute, StopGrace: time.Minute}
	if change != nil {
		change(&cfg)
	}
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range f.Members() {
			if err := m.Kill(); err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

func add(t *testing.T, f *Fleet, r Role) *Member {
	t.Helper()
	m, err := f.Add(r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func start(t *testing.T, f *Fleet) {
	t.Helper()
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func logOf(t *testing.T, m *Member) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(m.fleet.cfg.LogDir, m.Name()+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
