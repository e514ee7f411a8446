package mq

import (
	"context"
	"errors"
	"net"
	"strconv"

	liberrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// ErrorCode names the cause of a send that was not confirmed, in a few words
// that do not vary: it is stored with the reservation as last_error_code, and
// counted.
func ErrorCode(err error) string {
	var refused *primitive.MQBrokerErr
	var network net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return "BROKER_CODE_" + strconv.Itoa(int(refused.ResponseCode))
	case errors.Is(err, liberrors.ErrRequestTimeout), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &network) && network.Timeout():
		return "TIMEOUT"
	case errors.As(err, &network):
		return "CONNECTION"
	case errors.Is(err, liberrors.ErrTopicNotExist), errors.Is(err, liberrors.ErrNoNameserver):
		return "NO_ROUTE"
	}
	return "SEND_UNKNOWN"
}
