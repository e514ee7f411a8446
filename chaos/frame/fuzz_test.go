package frame

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzAnySplitGivesTheSameReplies: whatever two sides say, cutting it
// anywhere changes neither the replies nor whether it is refused; garbage
// never panics and is never kept beyond the bounds.
func FuzzAnySplitGivesTheSameReplies(f *testing.F) {
	for _, c := range conversations {
		var asked, answered []byte
		for _, s := range c.steps {
			if s.client {
				asked = append(asked, s.bytes...)
			} else {
				answered = append(answered, s.bytes...)
			}
		}
		f.Add(string(c.protocol), asked, answered, uint16(1), uint16(5))
	}
	f.Fuzz(func(t *testing.T, protocol string, asked, answered []byte, cut1, cut2 uint16) {
		if _, err := NewConversation(Protocol(protocol)); err != nil {
			protocol = string([]Protocol{Redis, RocketMQ, Postgres}[len(protocol)%3])
		}
		run := func(ask, answer [][]byte) (out []Reply, err error) {
			c, _ := NewConversation(Protocol(protocol))
			for _, p := range ask {
				if err := c.Request(p); err != nil {
					return nil, err
				}
			}
			for _, p := range answer {
				got, err := c.Reply(p)
				for _, r := range got {
					if r.Start < 0 || r.End < r.Start || r.End > len(p) {
						t.Fatalf("bytes %d to %d of %d", r.Start, r.End, len(p))
					}
					if len(r.Asked) > askedMax || len(r.Answered) > answerMax {
						t.Fatalf("%d and %d words kept", len(r.Asked), len(r.Answered))
					}
					for _, w := range append(append([]string{}, r.Asked...), r.Answered...) {
						if len(w) > wordMax {
							t.Fatalf("%d bytes of a word kept", len(w))
						}
					}
					r.Start, r.End = 0, 0
					out = append(out, r)
				}
				if err != nil {
					return out, err
				}
			}
			return out, nil
		}
		split := func(b []byte, at uint16) [][]byte {
			n := int(at) % (len(b) + 1)
			return [][]byte{b[:n], b[n:]}
		}
		single := func(b []byte) (out [][]byte) {
			for i := range b {
				out = append(out, b[i:i+1])
			}
			return out
		}
		want, wantErr := run([][]byte{asked}, [][]byte{answered})
		if wantErr != nil && !errors.Is(wantErr, ErrFrame) {
			t.Fatalf("error %v is no ErrFrame", wantErr)
		}
		for _, c := range [][2][][]byte{{split(asked, cut1), split(answered, cut2)}, {single(asked), single(answered)}} {
			got, err := run(c[0], c[1])
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("error %v in pieces, %v in one", err, wantErr)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("in one piece (-) and in several (+):\n%s", diff)
			}
		}
	})
}
