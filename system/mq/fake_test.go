package mq

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
)

// Codes of the remoting protocol.
const (
	reqRoute     = 105
	reqSend      = 10
	reqSendBatch = 320

	resSuccess          = 0
	resSystemBusy       = 2
	resFlushDiskTimeout = 10
	resTopicNotExist    = 17
)

// fake is a name server and a broker at one address, as far as a producer
// can tell. It counts what is sent and answers as told.
type fake struct {
	addr   string
	answer func(send int) (code int, reply bool)

	mu    sync.Mutex
	sends int
	last  map[string]string // header of the last send
	known map[string]bool   // topics; nil: all
}

// newFake serves until the test ends.
func newFake(t *testing.T, answer func(send int) (code int, reply bool)) *fake {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{addr: ln.Addr().String(), answer: answer}
	var serving sync.WaitGroup
	var conns sync.Map
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Store(c, nil)
			serving.Go(func() { defer c.Close(); f.serve(c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		conns.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		serving.Wait()
	})
	return f
}

type command struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int               `json:"opaque"`
	Flag      int               `json:"flag"`
	ExtFields map[string]string `json:"extFields"`
}

func (f *fake) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		var sizes [8]byte
		if _, err := io.ReadFull(r, sizes[:]); err != nil {
			return
		}
		total, header := binary.BigEndian.Uint32(sizes[:]), binary.BigEndian.Uint32(sizes[4:])&0xffffff
		frame := make([]byte, total-4)
		if _, err := io.ReadFull(r, frame); err != nil {
			return
		}
		var req command
		if err := json.Unmarshal(frame[:header], &req); err != nil {
			return
		}
		code, body, reply := f.handle(req)
		if !reply {
			continue
		}
		head, err := json.Marshal(command{Code: code, Language: "JAVA", Opaque: req.Opaque, Flag: 1,
			ExtFields: map[string]string{"msgId": "m", "queueId": "0", "queueOffset": "0"}})
		if err != nil {
			return
		}
		out := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body)))
		out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
		if _, err := c.Write(append(append(out, head...), body...)); err != nil {
			return
		}
	}
}

func (f *fake) handle(req command) (code int, body []byte, reply bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch req.Code {
	case reqRoute:
		if f.known != nil && !f.known[req.ExtFields["topic"]] {
			return resTopicNotExist, nil, true
		}
		return resSuccess, fmt.Appendf(nil, `{"brokerDatas":[{"brokerAddrs":{"0":%q},"brokerName":"b","cluster":"c"}],`+
			`"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":8,"writeQueueNums":8,"topicSysFlag":0}]}`, f.addr), true
	case reqSend, reqSendBatch:
		f.sends++
		f.last = req.ExtFields
		code, reply = f.answer(f.sends)
		return code, nil, reply
	}
	return resSuccess, nil, true
}

func (f *fake) sent() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sends
}

// creates makes messages of n reservations.
func creates(ids *seckill.IDGenerator, n int) []seckill.OrderCreateMessage {
	out := make([]seckill.OrderCreateMessage, n)
	for i := range out {
		id := ids.NewReservationID()
		out[i] = seckill.OrderCreateMessage{SchemaVersion: 1, EventType: seckill.EventTypeOrderCreateRequested, MessageID: seckill.MessageIDOf(id),
			MessageKey: id, ReservationID: id, RequestID: "r", ActivityID: 7, SKUID: 8, UserID: int64(i + 1)}
	}
	return out
}
