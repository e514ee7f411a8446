package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// countPath tells how many other requests were answered: the server's count,
// not a generator's word.
const countPath = "/served"

// bareServer answers everything with a few bytes, until its standard input
// ends. It prints its address.
func bareServer() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Println(ln.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var served atomic.Uint64
	body := []byte(`{"code":"OK","request_id":"01234567890123456789012345"}`)
	return (&fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == countPath {
			ctx.SetBodyString(strconv.FormatUint(served.Load(), 10))
			return
		}
		served.Add(1)
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	}}).Serve(ln)
}

// server is a bareServer in a process of its own.
type server struct {
	cmd  *exec.Cmd
	in   io.Closer
	addr string
}

func startServer(ctx context.Context) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	s := &server{cmd: exec.CommandContext(ctx, self, "-serve")}
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	s.addr = strings.TrimSpace(line)
	return s, nil
}

func (s *server) url() string { return "http://" + s.addr + "/" }

// served asks for the count so far.
func (s *server) served() (uint64, error) {
	resp, err := http.Get("http://" + s.addr + countPath)
	if err != nil {
		return 0, fmt.Errorf("ask the server: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("ask the server: %w", err)
	}
	return strconv.ParseUint(string(text), 10, 64)
}

func (s *server) stop() {
	_ = s.in.Close() // ends it
	_ = s.cmd.Wait()
}
