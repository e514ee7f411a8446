package stack

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
)

// Codes of org.apache.rocketmq.remoting.protocol.RequestCode.
const (
	requestUpdateBrokerConfig   = 25
	requestGetBrokerClusterInfo = 106
)

// maxFrameBytes bounds what is read of an answer; RocketMQ's own limit is 16 MiB.
const maxFrameBytes = 1 << 20

// registeredBrokers asks a name server for the addresses of the master brokers it knows. The client
// library has no call for it.
func registeredBrokers(ctx context.Context, nameServer string) ([]string, error) {
	_, body, err := callRemoting(ctx, nameServer, requestGetBrokerClusterInfo, nil, nil)
	if err != nil {
		return nil, err
	}
	return masters(body)
}

// callRemoting sends one request in RocketMQ's remoting protocol (length, header length, JSON header,
// body) on a connection of its own. A code other than success is an error.
func callRemoting(ctx context.Context, addr string, code int, fields map[string]string, body []byte) (remotingHeader, []byte, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return remotingHeader{}, nil, err
	}
	defer conn.Close()
	header, err := json.Marshal(remotingHeader{Code: code, Language: "GO", Opaque: 1,
		Serialization: "JSON", Fields: fields})
	if err != nil {
		return remotingHeader{}, nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	frame = append(append(frame, header...), body...)
	if _, err := conn.Write(frame); err != nil {
		return remotingHeader{}, nil, err
	}
	answer, answerBody, err := readFrame(conn)
	if err != nil {
		return remotingHeader{}, nil, err
	}
	if answer.Code != 0 {
		return remotingHeader{}, nil, fmt.Errorf("request %d answered code %d: %s", code, answer.Code, answer.Remark)
	}
	return answer, answerBody, nil
}

type remotingHeader struct {
	Code          int               `json:"code"`
	Language      string            `json:"language"`
	Version       int               `json:"version"`
	Opaque        int               `json:"opaque"`
	Flag          int               `json:"flag"`
	Remark        string            `json:"remark,omitempty"`
	Serialization string            `json:"serializeTypeCurrentRPC"`
	Fields        map[string]string `json:"extFields,omitempty"`
}

func readFrame(r io.Reader) (remotingHeader, []byte, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return remotingHeader{}, nil, fmt.Errorf("read frame: %w", err)
	}
	total := binary.BigEndian.Uint32(lengths[:4])
	headerLen := binary.BigEndian.Uint32(lengths[4:]) & 0xffffff // the top byte is the serialization
	if total < 4 || total > maxFrameBytes || headerLen > total-4 {
		return remotingHeader{}, nil, fmt.Errorf("read frame: impossible lengths %d and %d", total, headerLen)
	}
	rest := make([]byte, total-4)
	if _, err := io.ReadFull(r, rest); err != nil {
		return remotingHeader{}, nil, fmt.Errorf("read frame: %w", err)
	}
	var h remotingHeader
	if err := json.Unmarshal(rest[:headerLen], &h); err != nil {
		return remotingHeader{}, nil, fmt.Errorf("read frame header: %w", err)
	}
	return h, rest[headerLen:], nil
}

// RocketMQ's JSON leaves numbers that are keys unquoted: {0:"127.0.0.1:10911"}.
var numericKey = regexp.MustCompile(`([{,])(\d+):`)

// masters reads the addresses of brokers with id 0.
func masters(clusterInfo []byte) ([]string, error) {
	var info struct {
		BrokerAddrTable map[string]struct {
			BrokerAddrs map[string]string `json:"brokerAddrs"`
		} `json:"brokerAddrTable"`
	}
	if err := json.Unmarshal(numericKey.ReplaceAll(clusterInfo, []byte(`$1"$2":`)), &info); err != nil {
		return nil, fmt.Errorf("read cluster info: %w", err)
	}
	var addrs []string
	for _, b := range info.BrokerAddrTable {
		if a := b.BrokerAddrs["0"]; a != "" {
			addrs = append(addrs, a)
		}
	}
	return addrs, nil
}
