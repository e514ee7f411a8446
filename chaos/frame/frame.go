// Package frame reads what passes a proxy, as far as it takes to know which
// request a reply answers: Redis' RESP2 and RESP3, RocketMQ's remoting
// protocol, PostgreSQL's messages. It reads streams in whatever pieces they
// come, keeps a bounded part of each frame, and changes nothing.
//
// Sources: redis.io/docs/latest/develop/reference/protocol-spec;
// org.apache.rocketmq.remoting.protocol (RemotingCommand,
// RocketMQSerializable, RequestCode); PostgreSQL 15 documentation, chapter 55.
//
// It imports nothing of this repository.
package frame

import (
	"errors"
	"fmt"
)

// Protocol names what a connection speaks.
type Protocol string

// The protocols.
const (
	Redis    Protocol = "redis"
	RocketMQ Protocol = "rocketmq"
	Postgres Protocol = "postgres"
)

// Reply is an answer that has come in full.
type Reply struct {
	// Request is what it answers: a Redis command in upper case, the number of
	// a RocketMQ request code, a PostgreSQL command tag.
	Request string
	// Asked is what was asked with it, and Answered what came back, as far as
	// the protocol's conversation keeps it.
	Asked, Answered []string
	// Start and End bound the reply in the piece it ended in. Start is 0 if it
	// began in an earlier piece.
	Start, End int
}

// Conversation follows one connection. Requests must be told before they are
// sent on, or a reply could be there first. After an error it must not be used
// any more: what passes cannot be told apart. Not safe for concurrent use.
type Conversation interface {
	// Request takes the next bytes from client to server.
	Request(p []byte) error
	// Reply takes the next bytes from server to client and returns the replies
	// that ended in them.
	Reply(p []byte) ([]Reply, error)
}

// ErrFrame wraps what is not of the protocol, or beyond the bounds.
var ErrFrame = errors.New("frame: not of the protocol")

// NewConversation follows a connection from its first byte.
func NewConversation(p Protocol) (Conversation, error) {
	switch p {
	case Redis:
		return &redisConversation{asked: respReader{inline: true, most: askedMax}, answered: respReader{most: answerMax}}, nil
	case RocketMQ:
		return &rocketConversation{pending: map[int32]Reply{}}, nil
	case Postgres:
		return &postgresConversation{asked: pgReader{untyped: true}}, nil
	}
	return nil, fmt.Errorf("frame: no protocol %q", p)
}

// Bounds of what is kept of one frame and of one connection.
const (
	askedMax   = 16      // words of a Redis command, further ones are passed over
	answerMax  = 256     // words of a Redis reply, likewise
	wordMax    = 256     // bytes of a word, cut
	depthMax   = 32      // of nested Redis values
	lineMax    = 1 << 16 // bytes of a Redis line; longer ones are an error
	headerMax  = 1 << 16 // bytes of a RocketMQ header
	frameMax   = 1 << 30 // bytes of any frame
	pendingMax = 1 << 13 // requests of a connection that wait for their replies
)
