package seckill

// Reasons of UNAVAILABLE: what the edge fails closed for. Nothing was changed
// for such a request, but where ReasonRedisUnknown says that nobody can tell.
const (
	ReasonRedis         = "redis" // does not answer
	ReasonRedisUnknown  = "redis: the outcome is unknown, repeat the same request_id"
	ReasonBrokerBreaker = "broker breaker" // sends have failed for too long (R7.11.3)
	ReasonOrderLag      = "order lag"      // orders do not follow reservations (R7.11.5)
	// ReasonOrderLagUnknown: whether they do is not known, for no scanner has said so lately (R16.11).
	ReasonOrderLagUnknown = "order lag unknown"
	ReasonDraining        = "draining" // this process is ending; another serves
)
