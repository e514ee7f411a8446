package loadgen_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hotsku/hotsku/loadgen"
	"github.com/hotsku/hotsku/loadgen/history"
)

// seen counts how often a server read each request: nothing may be retried.
type seen struct {
	mu    sync.Mutex
	times map[uint64]int
}

func (s *seen) add(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times == nil {
		s.times = map[uint64]int{}
	}
	s.times[n]++
}

func (s *seen) addText(t *testing.T, text string) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Error(err)
	}
	s.add(n)
}

func (s *seen) noneTwice(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, times := range s.times {
		if times > 1 {
			t.Errorf("request %d was sent %d times", n, times)
		}
	}
}

// readRequest reads one request and returns its number.
func readRequest(r *bufio.Reader) (n uint64, err error) {
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "X-N":
			n, err = strconv.ParseUint(value, 10, 64)
		case "Content-Length":
			length, err = strconv.Atoi(value)
		}
		if err != nil {
			return 0, fmt.Errorf("header %q: %w", line, err)
		}
	}
	_, err = r.Discard(length)
	return n, err
}

// answerTo is an answer whose body is the request's number.
func answerTo(n uint64, status int, headers string) string {
	body := strconv.FormatUint(n, 10)
	return fmt.Sprintf("HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s", status, headers, len(body), body)
}

// answering serves each request by what handle makes of it; an empty answer
// leaves the connection open and reads no more, an error closes it.
func answering(tb testing.TB, s *seen, handle func(n uint64) (string, error)) (addr string) {
	return serve(tb, func(c net.Conn) { answerBy(c, s, handle) })
}

// answer serves one connection with the request's number.
func answer(c net.Conn, s *seen) {
	answerBy(c, s, func(n uint64) (string, error) { return answerTo(n, 200, ""), nil })
}

func answerBy(c net.Conn, s *seen, handle func(n uint64) (string, error)) {
	r := bufio.NewReader(c)
	for {
		n, err := readRequest(r)
		if err != nil {
			return
		}
		s.add(n)
		answer, err := handle(n)
		if answer == "" && err == nil {
			_, _ = io.Copy(io.Discard, c)
			return
		}
		if _, werr := io.WriteString(c, answer); werr != nil || err != nil {
			return
		}
	}
}

// numbered takes the request's number out of the answer's body.
func numbered(status int, body []byte) (code uint8, tag [16]byte) {
	n, _ := strconv.ParseUint(string(body), 10, 64)
	binary.LittleEndian.PutUint64(tag[:], n)
	return uint8(status / 100), tag
}

// checkRun holds what is true of every run: the equation, the history's
// agreement with the result, each request described once, answers matched to
// their requests, and histograms and series that add up.
func checkRun(t *testing.T, res *loadgen.Result, dir string) {
	t.Helper()
	if err := res.Balanced(); err != nil {
		t.Error(err)
	}
	if res.Sent != res.Scheduled-res.Dropped {
		t.Errorf("sent %d, scheduled %d, dropped %d", res.Sent, res.Scheduled, res.Dropped)
	}
	for name, got := range map[string]int64{
		"latency": res.Latency.TotalCount(), "service": res.Service.TotalCount(),
	} {
		if want := res.Completed + res.TimedOut + res.Unfinished; got != int64(want) {
			t.Errorf("%d in the %s histogram, want %d", got, name, want)
		}
	}
	if got := res.SendLag.TotalCount(); got != int64(res.Sent) {
		t.Errorf("%d in the send lag histogram, want %d", got, res.Sent)
	}
	var scheduled, completed, lost uint64
	for _, p := range res.Series {
		scheduled += p.Scheduled
		completed += p.Completed
		lost += p.Lost
	}
	if scheduled != res.Scheduled || completed != res.Completed || lost != res.Failed+res.TimedOut+res.Unfinished {
		t.Errorf("series adds up to %d scheduled, %d completed, %d lost", scheduled, completed, lost)
	}

	d, err := history.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	described := map[uint64]bool{}
	outcomes := map[history.Outcome]uint64{}
	var rec history.Record
	for err = d.Next(&rec); err == nil; err = d.Next(&rec) {
		if described[rec.N] || rec.N >= res.Scheduled {
			t.Fatalf("request %d is described twice or was never scheduled", rec.N)
		}
		described[rec.N] = true
		outcomes[rec.Outcome]++
		if err := checkRecord(rec); err != nil {
			t.Fatalf("request %d: %v", rec.N, err)
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	if got := d.Totals(); got.Records+got.Unrecorded != res.Scheduled || got.Unrecorded != res.Unrecorded {
		t.Errorf("history holds %+v of %d, %d unrecorded", got, res.Scheduled, res.Unrecorded)
	}
	for o, want := range map[history.Outcome]uint64{
		history.Completed: res.Completed, history.Failed: res.Failed, history.TimedOut: res.TimedOut,
		history.Dropped: res.Dropped - res.Unrecorded, history.Unfinished: res.Unfinished,
	} {
		if outcomes[o] != want {
			t.Errorf("%d %v in the history, %d in the result", outcomes[o], o, want)
		}
	}
}

func checkRecord(r history.Record) error {
	if r.Subject != r.N*7 || r.Ordinal != uint32(r.N) {
		return fmt.Errorf("subject %d, ordinal %d are another's", r.Subject, r.Ordinal)
	}
	if r.Outcome == history.Dropped {
		if r.Sent != history.Never || r.Done != history.Never {
			return fmt.Errorf("dropped, yet sent %d, done %d", r.Sent, r.Done)
		}
		return nil
	}
	if r.Intended < 0 || r.Sent < r.Intended || r.Done < r.Sent {
		return fmt.Errorf("intended %d, sent %d, done %d", r.Intended, r.Sent, r.Done)
	}
	if tag := binary.LittleEndian.Uint64(r.Tag[:]); r.Outcome == history.Completed && tag != r.N {
		return fmt.Errorf("got the answer of request %d", tag)
	}
	return nil
}
