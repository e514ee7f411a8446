package remoting

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

func frame(header, body string) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	f = binary.BigEndian.AppendUint32(f, uint32(len(header)))
	return append(append(f, header...), body...)
}

func FuzzReadFrame(f *testing.F) {
	f.Add(frame(`{"code":0,"opaque":1,"flag":1,"extFields":{"offset":"5"}}`, "body"))
	f.Add(frame(`{`, ""))
	f.Add([]byte("\x00\x00\x00\x06\x00\x00\x00\x09{}"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, body, err := readFrame(bytes.NewReader(data))
		if err == nil && len(body) > len(data) {
			t.Errorf("%+v with %d bytes of %d", h, len(body), len(data))
		}
	})
}

func TestFramesAreNeverReadShort(t *testing.T) {
	whole := frame(`{"code":0,"extFields":{"offset":"5"}}`, "the body")
	for cut := range len(whole) {
		if _, _, err := readFrame(bytes.NewReader(whole[:cut])); err == nil {
			t.Fatalf("cut at byte %d of %d: no error", cut, len(whole))
		}
	}
	h, body, err := readFrame(io.LimitReader(bytes.NewReader(append(whole, "next"...)), 1<<20))
	if err != nil || h.Fields["offset"] != "5" || string(body) != "the body" {
		t.Errorf("%+v %q %v", h, body, err)
	}
}
