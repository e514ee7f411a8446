package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answer is a Response that outlives the parser's buffers.
type answer struct {
	Status uint16
	Body   string
	Length int64
	Close  bool
}

// parseAll feeds the stream cut into pieces of the given sizes, the last one
// repeating, and then the end of the connection.
func parseAll(stream []byte, sizes ...int) (got []answer, err error) {
	var p Parser
	add := func(r *Response) { got = append(got, answer{r.Status, string(r.Body), r.Length, r.Close}) }
	for i := 0; len(stream) > 0; i++ {
		piece := stream
		if len(sizes) > 0 {
			piece = stream[:min(sizes[min(i, len(sizes)-1)], len(stream))]
		}
		stream = stream[len(piece):]
		for len(piece) > 0 {
			r, n, done, err := p.Feed(piece)
			if err != nil {
				return got, err
			}
			if n == 0 && !done {
				return got, fmt.Errorf("no progress at %q", piece)
			}
			piece = piece[n:]
			if done {
				add(r)
			}
		}
	}
	if r, done := p.EOF(); done {
		add(r)
	} else if !p.Idle() {
		return got, io.ErrUnexpectedEOF
	}
	return got, nil
}

var parserCases = []struct {
	name   string
	stream string
	want   []answer
}{
	{"content length", "HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhello", []answer{{202, "hello", 5, false}}},
	{"no body", "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", []answer{{410, "", 0, false}}},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", []answer{{200, "", 0, false}}},
	{"header names in any case, blanks around values",
		"HTTP/1.1 200 OK\r\ncOnTeNt-LENGTH:\t 2 \r\nCONNECTION: x, Close\r\n\r\nok", []answer{{200, "ok", 2, true}}},
	{"pipelined", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb" +
		"HTTP/1.1 503 No\r\nContent-Length: 1\r\n\r\nc", []answer{{200, "a", 1, false}, {200, "b", 1, false}, {503, "c", 1, false}}},
	{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n4\r\nWiki\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n" +
		"HTTP/1.1 204 No Content\r\n\r\n", []answer{{200, "Wiki0123456789", 14, false}, {204, "", 0, false}}},
	{"chunked beats length", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		[]answer{{200, "x", 1, false}}},
	{"204 and 304 have no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		[]answer{{304, "", 0, false}, {204, "", 0, false}}},
	{"informational answers are skipped", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz",
		[]answer{{200, "z", 1, false}}},
	{"until the connection ends", "HTTP/1.1 200 OK\r\n\r\nall of it", []answer{{200, "all of it", 9, true}}},
	{"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", []answer{{200, "a", 1, true}}},
	{"HTTP/1.0 keeps alive when it says so", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", []answer{{200, "a", 1, false}}},
	{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nokHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", []answer{{200, "ok", 2, false}, {200, "a", 1, false}}},
	{"equal lengths twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", []answer{{200, "a", 1, false}}},
	{"length beyond memory", "HTTP/1.1 200 OK\r\nContent-Length: " + fmt.Sprint(BodyKeptMax+7) + "\r\n\r\n" + strings.Repeat("b", BodyKeptMax+7) +
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", []answer{{200, strings.Repeat("b", BodyKeptMax), BodyKeptMax + 7, false}, {200, "a", 1, false}}},
}

func TestParserReadsWholeAnswers(t *testing.T) {
	for _, tc := range parserCases {
		got, err := parseAll([]byte(tc.stream))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		} else if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %.500s", tc.name, diff)
		}
	}
}

func TestParserDoesNotMindWhereAnswersAreCut(t *testing.T) {
	for _, tc := range parserCases {
		cuts := []int{997, 32 << 10, BodyKeptMax} // of megabytes; of others every byte
		if len(tc.stream) < 1000 {
			cuts = cuts[:0]
			for i := range tc.stream {
				cuts = append(cuts, i+1)
			}
		}
		for _, i := range cuts {
			for _, sizes := range [][]int{{i, len(tc.stream)}, {i}, {i, 1, len(tc.stream)}} {
				got, err := parseAll([]byte(tc.stream), sizes...)
				if err != nil {
					t.Fatalf("%s in pieces of %v: %v", tc.name, sizes, err)
				}
				if !cmp.Equal(tc.want, got) {
					t.Fatalf("%s in pieces of %v: got %.500v", tc.name, sizes, got)
				}
			}
		}
	}
}

func TestParserRefusesWhatItCannotFrame(t *testing.T) {
	for _, tc := range []struct{ name, stream string }{
		{"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n"},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n"},
		{"status below 100", "HTTP/1.1 099 X\r\n\r\n"},
		{"status of four digits", "HTTP/1.1 2000 X\r\n\r\n"},
		{"leading line break", "\r\nHTTP/1.1 200 OK\r\n\r\n"},
		{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"},
		{"empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n"},
		{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"},
		{"length in a list", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n"},
		{"compressed transfer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
		{"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"folded header", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"},
		{"blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n"},
		{"header without colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"},
		{"bad chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"},
		{"empty chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n"},
		{"huge chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"},
		{"chunk longer than its size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"},
		{"endless line", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", lineMax)},
		{"endless head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", headLinesMax)},
		{"switching protocols", "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
	} {
		for _, sizes := range [][]int{nil, {1}, {7}} {
			if _, err := parseAll([]byte(tc.stream), sizes...); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s in pieces of %v: error %v, want ErrMalformed", tc.name, sizes, err)
			}
		}
	}
}

func TestParserDoesNotAllocate(t *testing.T) {
	stream := []byte("HTTP/1.1 410 Gone\r\nServer: x\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n{\"code\":\"SOLD_OUT\"  }" +
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n0\r\n\r\n")
	var p Parser
	feed := func() {
		for i, size := 0, 1; i < len(stream); size = size*2%97 + 1 {
			end := min(i+size, len(stream))
			_, n, _, err := p.Feed(stream[i:end])
			if err != nil {
				t.Fatal(err)
			}
			i += n
		}
	}
	feed()
	if n := testing.AllocsPerRun(100, feed); n != 0 {
		t.Errorf("%v allocations for two answers, want none", n)
	}
}

// FuzzParser holds two properties: how the bytes are cut makes no difference,
// and what net/http also reads is read alike.
func FuzzParser(f *testing.F) {
	for _, tc := range parserCases {
		if len(tc.stream) < 1000 {
			f.Add([]byte(tc.stream), uint8(1), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, a, b uint8) {
		whole, wholeErr := parseAll(stream)
		cut, cutErr := parseAll(stream, int(a)+1, int(b)+1)
		if (wholeErr == nil) != (cutErr == nil) || !cmp.Equal(whole, cut) {
			t.Fatalf("whole: %v, %v\nin pieces: %v, %v", whole, wholeErr, cut, cutErr)
		}
		r := bufio.NewReader(bytes.NewReader(stream))
		for i := range whole {
			theirs, err := http.ReadResponse(r, nil)
			for err == nil && theirs.StatusCode < 200 {
				theirs, err = http.ReadResponse(r, nil)
			}
			if err != nil {
				return // stricter than we need to be
			}
			body, err := io.ReadAll(theirs.Body)
			if err != nil {
				return
			}
			if theirs.StatusCode != int(whole[i].Status) || string(body) != whole[i].Body {
				t.Fatalf("answer %d: %d %q, net/http reads %d %q", i, whole[i].Status, whole[i].Body, theirs.StatusCode, body)
			}
		}
	})
}

func BenchmarkParser(b *testing.B) {
	one := "HTTP/1.1 410 Gone\r\nServer: fasthttp\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n{\"code\":\"SOLD_OUT\"  }"
	for _, bc := range []struct{ name, stream string }{
		{"repeated head", one},
		{"changing head", one + strings.Replace(one, "00:00:00", "00:00:01", 1)},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			stream := []byte(strings.Repeat(bc.stream, 100))
			var p Parser
			rest := stream
			for b.Loop() {
				_, n, _, err := p.Feed(rest)
				if err != nil {
					b.Fatal(err)
				}
				if rest = rest[n:]; len(rest) == 0 {
					rest = stream
				}
			}
		})
	}
}
