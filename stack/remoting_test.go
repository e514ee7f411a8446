package stack

import (
	"slices"
	"testing"
)

func TestMastersOfClusterInfo(t *testing.T) {
	for _, c := range []struct {
		name, json string
		want       []string
	}{
		{"numeric keys unquoted", `{"brokerAddrTable":{"a":{"brokerAddrs":{0:"127.0.0.1:1",1:"127.0.0.1:2"}}}}`, []string{"127.0.0.1:1"}},
		{"numeric keys quoted", `{"brokerAddrTable":{"a":{"brokerAddrs":{"0":"127.0.0.1:1"}}}}`, []string{"127.0.0.1:1"}},
		{"slave alone", `{"brokerAddrTable":{"a":{"brokerAddrs":{1:"127.0.0.1:2"}}}}`, nil},
		{"none", `{"brokerAddrTable":{}}`, nil},
	} {
		got, err := masters([]byte(c.json))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
