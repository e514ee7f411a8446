package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is what one side of a conversation says.
type step struct {
	client bool
	bytes  string
}

func asks(s string) step    { return step{true, s} }
func answers(s string) step { return step{false, s} }

// remoting is a frame with a JSON header.
func remoting(header, body string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	return string(b) + header + body
}

// binaryRemoting is a frame with a header in RocketMQ's own serialization.
func binaryRemoting(code uint16, opaque, flag uint32, fields ...string) string {
	h := binary.BigEndian.AppendUint16(nil, code)
	h = append(h, 9, 0, 1)
	h = binary.BigEndian.AppendUint32(h, opaque)
	h = binary.BigEndian.AppendUint32(h, flag)
	h = append(h, 0, 0, 0, 2, 'h', 'i')
	var all []byte
	for i := 0; i+1 < len(fields); i += 2 {
		all = binary.BigEndian.AppendUint16(all, uint16(len(fields[i])))
		all = append(all, fields[i]...)
		all = binary.BigEndian.AppendUint32(all, uint32(len(fields[i+1])))
		all = append(all, fields[i+1]...)
	}
	h = binary.BigEndian.AppendUint32(h, uint32(len(all)))
	h = append(h, all...)
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(h)+3))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h))|1<<24)
	return string(b) + string(h) + "bod"
}

// pg is a message with a type byte; kind 0 is a client's first.
func pg(kind byte, body string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))
	if kind == 0 {
		return string(b) + body
	}
	return string(kind) + string(b) + body
}

// oneWays are more than may wait for answers, each with a number of its own.
func oneWays() string {
	var b strings.Builder
	for i := range uint32(pendingMax + 1) {
		b.WriteString(binaryRemoting(34, 10+i, remotingOneWay))
	}
	return b.String()
}

const startup = "\x00\x03\x00\x00user\x00postgres\x00\x00"

// conversations are what the product's clients and servers say to each other,
// and what else the protocols allow.
var conversations = []struct {
	what     string
	protocol Protocol
	steps    []step
	want     []Reply // without Start and End
}{
	{"a script, RESP2", Redis, []step{
		asks("*4\r\n$7\r\nevalsha\r\n$4\r\nabcd\r\n$1\r\n1\r\n$3\r\nkey\r\n"),
		answers("*4\r\n$2\r\n17\r\n:18\r\n$-1\r\n$7\r\nCREATED\r\n"),
	}, []Reply{{Request: "EVALSHA", Asked: []string{"abcd", "1", "key"}, Answered: []string{"17", "18", "", "CREATED"}}}},
	{"HELLO, then RESP3 with a push between and every type", Redis, []step{
		asks("*2\r\n$5\r\nhello\r\n$1\r\n3\r\n*1\r\n$4\r\nPING\r\n"),
		answers("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"),
		answers(">2\r\n+invalidate\r\n*1\r\n$1\r\na\r\n"),
		answers("*9\r\n_\r\n#t\r\n,1.5\r\n(12345678901234567890\r\n!5\r\nERR x\r\n=7\r\ntxt:abc\r\n~2\r\n:1\r\n:2\r\n%0\r\n*-1\r\n"),
	}, []Reply{
		{Request: "HELLO", Asked: []string{"3"}, Answered: []string{"server", "redis", "proto", "3"}},
		{Request: "PING", Asked: []string{}, Answered: []string{"", "t", "1.5", "12345678901234567890", "ERR x", "txt:abc", "1", "2"}},
	}},
	{"attributes belong to the value behind them", Redis, []step{
		asks("*1\r\n$3\r\none\r\n*1\r\n$3\r\ntwo\r\n"),
		answers("|1\r\n+ttl\r\n:9\r\n*2\r\n:1\r\n|1\r\n+a\r\n:2\r\n:3\r\n"),
		answers("+OK\r\n"),
	}, []Reply{
		{Request: "ONE", Asked: []string{}, Answered: []string{"ttl", "9", "1", "a", "2", "3"}},
		{Request: "TWO", Asked: []string{}, Answered: []string{"OK"}},
	}},
	{"a pipeline answered in order, an error in it", Redis, []step{
		asks("*2\r\n$3\r\nGET\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\nPING now\r\n\r\n"),
		answers("$0\r\n\r\n-ERR no\r\n+PONG\r\n"),
	}, []Reply{
		{Request: "GET", Asked: []string{"a"}, Answered: []string{""}},
		{Request: "GET", Asked: []string{"b"}, Answered: []string{"ERR no"}},
		{Request: "PING", Asked: []string{"now"}, Answered: []string{"PONG"}},
	}},
	{"two sends answered in the other order, a heartbeat, a notice of the broker's", RocketMQ, []step{
		asks(remoting(`{"code":320,"opaque":7,"flag":0,"extFields":{"a":"g","b":"seckill_order_create"}}`, "messages")),
		asks(remoting(`{"code":310,"opaque":8,"flag":0,"extFields":{"b":"seckill_event"}}`, "")),
		asks(remoting(`{"code":34,"opaque":9,"flag":2,"extFields":{}}`, "nobody answers")),
		asks(remoting(`{"code":10,"opaque":10,"flag":0,"extFields":{"topic":"old"}}`, "m")),
		answers(remoting(`{"code":40,"opaque":7,"flag":0}`, "consumers have changed")),
		answers(remoting(`{"code":0,"opaque":8,"flag":1,"extFields":{"msgId":"x"}}`, "")),
		answers(remoting(`{"code":2,"opaque":7,"flag":1,"remark":"busy"}`, "")),
		answers(remoting(`{"code":0,"opaque":7,"flag":1}`, "a second time")),
		answers(remoting(`{"code":0,"opaque":10,"flag":1}`, "")),
	}, []Reply{
		{Request: SendMessageV2, Asked: []string{"seckill_event"}, Answered: []string{"0"}},
		{Request: SendBatchMessage, Asked: []string{"seckill_order_create"}, Answered: []string{"2"}},
		{Request: SendMessage, Asked: []string{"old"}, Answered: []string{"0"}},
	}},
	{"RocketMQ's own serialization", RocketMQ, []step{
		asks(binaryRemoting(320, 5, 0, "a", "group", "b", "seckill_order_create")),
		answers(binaryRemoting(0, 5, 1)),
	}, []Reply{{Request: SendBatchMessage, Asked: []string{"seckill_order_create"}, Answered: []string{"0"}}}},
	{"a simple COMMIT", Postgres, []step{
		asks(pg(0, startup)),
		answers(pg('R', "\x00\x00\x00\x00") + pg('S', "a\x00b\x00") + pg('Z', "I")),
		asks(pg('Q', "begin\x00") + pg('Q', "commit\x00")),
		answers(pg('C', "BEGIN\x00") + pg('Z', "T") + pg('C', "COMMIT\x00") + pg('Z', "I")),
	}, []Reply{{Request: "BEGIN"}, {Request: "COMMIT"}}},
	{"a pipeline of prepared statements", Postgres, []step{
		asks(pg(0, startup)),
		answers(pg('Z', "I")),
		asks(pg('P', "\x00begin\x00\x00\x00") + pg('B', "") + pg('E', "\x00\x00\x00\x00\x00") + pg('S', "")),
		answers(pg('1', "") + pg('2', "") + pg('C', "BEGIN\x00") + pg('2', "") + pg('D', "\x00\x00C\x00\x00\x00\x0bCOMMIT\x00") +
			pg('C', "INSERT 0 1\x00") + pg('2', "") + pg('C', "COMMIT\x00") + pg('Z', "I")),
	}, []Reply{{Request: "BEGIN"}, {Request: "INSERT 0 1"}, {Request: "COMMIT"}}},
	{"encryption asked for twice and refused", Postgres, []step{
		asks(pg(0, "\x04\xd2\x16\x30")), answers("N"),
		asks(pg(0, "\x04\xd2\x16\x2f")), answers("N"),
		asks(pg(0, startup)), answers(pg('N', "notice") + pg('C', "SET\x00")),
	}, []Reply{{Request: "SET"}}},
	{"encryption asked for twice at once", Postgres, []step{
		asks(pg(0, "\x04\xd2\x16\x30") + pg(0, "\x04\xd2\x16\x2f") + pg(0, startup)), answers("NN" + pg('C', "SET\x00")),
	}, []Reply{{Request: "SET"}}},
	{"more that nobody answers than may wait for answers", RocketMQ, []step{
		asks(oneWays()),
		asks(binaryRemoting(310, 0, 0)), answers(binaryRemoting(0, 0, remotingAnswer)),
	}, []Reply{{Request: SendMessageV2, Answered: []string{"0"}}}},
}

// follow tells a conversation its steps in pieces of at most so many bytes.
func follow(t testing.TB, p Protocol, steps []step, piece int) ([]Reply, error) {
	t.Helper()
	c, err := NewConversation(p)
	if err != nil {
		t.Fatal(err)
	}
	var out []Reply
	for _, s := range steps {
		for rest := []byte(s.bytes); len(rest) > 0; {
			n := min(piece, len(rest))
			if s.client {
				err = c.Request(rest[:n])
			} else {
				var got []Reply
				got, err = c.Reply(rest[:n])
				for _, r := range got {
					if r.Start < 0 || r.End <= r.Start || r.End > n {
						t.Errorf("%s: bytes %d to %d of a piece of %d", r.Request, r.Start, r.End, n)
					}
					r.Start, r.End = 0, 0
					out = append(out, r)
				}
			}
			if err != nil {
				return out, err
			}
			rest = rest[n:]
		}
	}
	return out, nil
}

func TestRepliesAreToldByTheirRequestsHoweverTheBytesCome(t *testing.T) {
	for _, c := range conversations {
		t.Run(c.what, func(t *testing.T) {
			for _, piece := range []int{1 << 20, 1, 2, 3, 5, 7, 11} {
				got, err := follow(t, c.protocol, c.steps, piece)
				if err != nil {
					t.Fatalf("in pieces of %d: %v", piece, err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", piece, diff)
				}
			}
		})
	}
}

// The bounds of a reply are what a proxy cuts at.
func TestAReplyIsBounded(t *testing.T) {
	begin := pg('C', "BEGIN\x00") + pg('Z', "T")
	p, _ := NewConversation(Postgres)
	replies, err := p.Reply([]byte(begin + pg('C', "COMMIT\x00") + pg('Z', "I")))
	if err != nil || len(replies) != 2 || replies[1].Start != len(begin) || replies[1].End != len(begin)+12 {
		t.Errorf("replies %+v (%v), want the second at %d", replies, err, len(begin))
	}
	m, _ := NewConversation(RocketMQ)
	_ = m.Request([]byte(binaryRemoting(310, 1, 0) + binaryRemoting(310, 2, 0)))
	answer := binaryRemoting(0, 1, remotingAnswer)
	if replies, err := m.Reply([]byte(answer + binaryRemoting(0, 2, remotingAnswer))); err != nil || len(replies) != 2 || replies[1].Start != len(answer) {
		t.Errorf("replies %+v (%v), want the second at %d", replies, err, len(answer))
	}
	c, _ := NewConversation(Redis)
	if err := c.Request([]byte("*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n*1\r\n$1\r\nc\r\n")); err != nil {
		t.Fatal(err)
	}
	first, _ := c.Reply([]byte("+on"))
	second, _ := c.Reply([]byte("e\r\n:2\r\n$3\r\nth"))
	third, err := c.Reply([]byte("r\r\n"))
	if len(first) != 0 || len(second) != 2 || len(third) != 1 || err != nil {
		t.Fatalf("replies %v, %v, %v (%v)", first, second, third, err)
	}
	for _, b := range [][4]int{{second[0].Start, second[0].End, 0, 3}, {second[1].Start, second[1].End, 3, 7}, {third[0].Start, third[0].End, 0, 3}} {
		if b[0] != b[2] || b[1] != b[3] {
			t.Errorf("a reply is at %d to %d, want %d to %d", b[0], b[1], b[2], b[3])
		}
	}
}

func TestWhatIsNoFrameIsAnError(t *testing.T) {
	for _, c := range []struct {
		what     string
		protocol Protocol
		steps    []step
	}{
		{"a reply nobody asked for", Redis, []step{answers("+OK\r\n")}},
		{"no type", Redis, []step{asks("PING\r\n"), answers("HTTP/1.1 200 OK\r\n")}},
		{"an empty line", Redis, []step{asks("PING\r\n"), answers("\r\n")}},
		{"a length that is none", Redis, []step{asks("*x\r\n")}},
		{"a length below null", Redis, []step{asks("PING\r\n"), answers("$-2\r\n")}},
		{"a length no server sends", Redis, []step{asks("PING\r\n"), answers("$99999999999\r\n")}},
		{"a nest without end", Redis, []step{asks("PING\r\n"), answers(strings.Repeat("*1\r\n", depthMax+1))}},
		{"a line without end", Redis, []step{asks("PING\r\n"), answers("+" + strings.Repeat("x", lineMax+1))}},
		{"commands without end", Redis, []step{asks(strings.Repeat("PING\r\n", pendingMax+1))}},
		{"a frame shorter than its header", RocketMQ, []step{asks("\x00\x00\x00\x05\x00\x00\x00\x09")}},
		{"a header without end", RocketMQ, []step{asks("\x0f\xff\xff\xff\x00\xff\xff\xff")}},
		{"a header that is no JSON", RocketMQ, []step{asks(remoting("{", ""))}},
		{"no serialization", RocketMQ, []step{asks("\x00\x00\x00\x06\x07\x00\x00\x02{}")}},
		{"a binary header cut short", RocketMQ, []step{asks("\x00\x00\x00\x06\x01\x00\x00\x02{}")}},
		{"a message shorter than its length", Postgres, []step{asks(pg(0, startup)), answers("C\x00\x00\x00\x03")}},
		{"a message no server sends", Postgres, []step{asks(pg(0, startup)), answers("C\x7f\x00\x00\x03")}},
		{"a first message without a version", Postgres, []step{asks(pg(0, "v"))}},
		{"an encrypted connection", Postgres, []step{asks(pg(0, "\x04\xd2\x16\x2f")), answers("S")}},
		{"encryption asked for without end", Postgres, []step{asks(strings.Repeat(pg(0, "\x04\xd2\x16\x2f"), 3))}},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, piece := range []int{1 << 20, 1} {
				if got, err := follow(t, c.protocol, c.steps, piece); !errors.Is(err, ErrFrame) {
					t.Errorf("in pieces of %d: %v, error %v", piece, got, err)
				}
			}
		})
	}
	if _, err := NewConversation("smtp"); err == nil {
		t.Error("an unknown protocol was taken")
	}
}

// What a connection keeps is bounded, whatever passes it.
func TestWhatIsKeptIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	c, _ := NewConversation(Redis)
	if err := c.Request(fmt.Appendf(nil, "*2\r\n$3\r\nSET\r\n$%d\r\n%s\r\n", len(long), long)); err != nil {
		t.Fatal(err)
	}
	replies, err := c.Reply([]byte("*1000\r\n" + strings.Repeat("+word\r\n", 1000)))
	if err != nil || len(replies) != 1 {
		t.Fatalf("replies %d, error %v", len(replies), err)
	}
	if n := len(replies[0].Asked[0]); n != wordMax {
		t.Errorf("%d bytes of a word were kept, want %d", n, wordMax)
	}
	if n := len(replies[0].Answered); n != answerMax {
		t.Errorf("%d words were kept, want %d", n, answerMax)
	}
}
