package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/hotsku/hotsku/stack/remoting"
)

// Codes of org.apache.rocketmq.remoting.protocol.RequestCode.
const (
	requestUpdateBrokerConfig   = 25
	requestGetBrokerConfig      = 26
	requestGetBrokerClusterInfo = 106
)

// registeredBrokers asks a name server for the addresses of the master brokers it knows. The client
// library has no call for it.
func registeredBrokers(ctx context.Context, nameServer string) ([]string, error) {
	_, body, err := callRemoting(ctx, nameServer, requestGetBrokerClusterInfo, nil, nil)
	if err != nil {
		return nil, err
	}
	return masters(body)
}

// callRemoting sends one request on a connection of its own, for one look.
func callRemoting(ctx context.Context, addr string, code int, fields map[string]string, body []byte) (remoting.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := remoting.Dial(ctx, addr)
	if err != nil {
		return remoting.Header{}, nil, err
	}
	defer conn.Close()
	return conn.Call(ctx, code, fields, body)
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
