package loadgen_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// serverEnv makes the test binary a bare server instead: the process that
// measurements load.
const serverEnv = "LOADGEN_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		if err := bareServer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// bareServer refuses everything, until its standard input ends.
func bareServer() error {
	ln, err := listen()
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		os.Exit(0)
	}()
	body := []byte(`{"code":"REFUSED","request_id":"01234567890123456789012345"}`)
	return (&fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetStatusCode(410)
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	}}).Serve(ln)
}

// startBareServer runs bareServer in a process of its own.
func startBareServer(tb testing.TB) (addr string, pid int) {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), serverEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("the server did not start: %v", err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}
