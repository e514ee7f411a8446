package telemetry

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"

	"github.com/hotsku/hotsku/system/seckill"
)

// UserKey names users in logs without naming them: a keyed hash, the same for
// one user wherever the key is the same, and no way back without it (R12.6).
type UserKey []byte

// userKeyMin is the shortest key: a guessable one gives the users away, whose
// ids are few enough to try.
const userKeyMin = 16 // bytes

// ParseUserKey reads a key in hex. Empty is a random one: lines of one
// process agree then, those of two do not.
func ParseUserKey(text string) (UserKey, error) {
	if text == "" {
		key := make(UserKey, userKeyMin)
		_, err := rand.Read(key)
		return key, err
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) < userKeyMin {
		return nil, fmt.Errorf("log user key: must be %d or more hex digits", 2*userKeyMin)
	}
	return key, nil
}

// Hash is the user's name in logs: 16 hex digits.
func (k UserKey) Hash(userID int64) string {
	mac := hmac.New(sha256.New, k)
	mac.Write(strconv.AppendInt(nil, userID, 10))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// The names of a user in a log attribute and in a log line.
const (
	userIDAttribute = "user_id"
	userHashField   = "user_id_hash"
)

// NewLogHandler writes JSON lines at level and above. An attribute user_id,
// wherever it stands, is written as user_id_hash.
func NewLogHandler(w io.Writer, level slog.Level, key UserKey) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != userIDAttribute {
			return a
		}
		hash := "" // what is no integer is no user: nothing of it is written
		if v := a.Value.Resolve(); v.Kind() == slog.KindInt64 && v.Int64() != 0 {
			hash = key.Hash(v.Int64())
		}
		return slog.String(userHashField, hash)
	}})
}

// Subject is what a key line is about: the fields of specification 12.6. Each
// line has them all, empty where they are not known (yet); the zone is the
// logger's.
type Subject struct {
	Trace         seckill.Traceparent
	RequestID     string
	ReservationID string
	MessageID     string
	ActivityID    int64
	SKUID         int64
	UserID        int64 // written as user_id_hash
	OrderID       string
	TokenID       int64 // inventory token
	ConsumerGroup string
	RetryCount    int64
	ResultCode    string
	ErrorClass    string
}

// Attrs are the fields of a line.
func (s Subject) Attrs() []slog.Attr {
	trace := s.Trace
	if trace == "" {
		trace = seckill.TraceOf(s.ReservationID, false)
	}
	return []slog.Attr{
		slog.String("trace_id", trace.TraceID()), slog.String("span_id", trace.SpanID()),
		slog.String("request_id", s.RequestID), slog.String("reservation_id", s.ReservationID), slog.String("message_id", s.MessageID),
		slog.Int64("activity_id", s.ActivityID), slog.Int64("sku_id", s.SKUID), slog.Int64(userIDAttribute, s.UserID),
		slog.String("order_id", s.OrderID), slog.Int64("inventory_token_id", s.TokenID),
		slog.String("consumer_group", s.ConsumerGroup), slog.Int64("retry_count", s.RetryCount),
		slog.String("result_code", s.ResultCode), slog.String("error_class", s.ErrorClass),
	}
}

// UseErrorLog sends what the trace library complains about to log, for
// debugging: it would write to standard error otherwise. Call it once, at the edge; the
// library keeps one handler a process.
func UseErrorLog(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Debug("tracing: " + oneLine(err))
	}))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
