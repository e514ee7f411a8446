package seckill

import "strconv"

// Keys names the Redis keys of one (activity, SKU), all in one hash slot by
// the tag {activity:sku} (specification 8.1).
type Keys struct{ prefix string }

// KeysOf returns the keys of an activity's SKU.
func KeysOf(activityID, skuID int64) Keys {
	b := make([]byte, 0, 56)
	b = append(b, "seckill:{"...)
	b = strconv.AppendInt(b, activityID, 10)
	b = append(b, ':')
	b = strconv.AppendInt(b, skuID, 10)
	b = append(b, "}:"...)
	return Keys{string(b)}
}

// Prefix is common to all keys of the SKU.
func (k Keys) Prefix() string { return k.prefix }

// Meta is a HASH: status, version, starts_at, ends_at, expire_at, open_at, and
// closed_at once it was closed.
func (k Keys) Meta() string { return k.prefix + "meta" }

// Stock is a STRING: units that may be reserved.
func (k Keys) Stock() string { return k.prefix + "stock" }

// SoldOut is a STRING, present while the stock is 0.
func (k Keys) SoldOut() string { return k.prefix + "soldout" }

// Pending is a ZSET: reservation id by next_retry_at in microseconds.
func (k Keys) Pending() string { return k.prefix + "resv:pending" }

// Log is a STREAM, the change log: one entry a change of stock.
func (k Keys) Log() string { return k.prefix + "log" }

// User is a STRING: the reservation id the user holds or held.
func (k Keys) User(userID int64) string {
	return k.prefix + "user:" + strconv.FormatInt(userID, 10)
}

// Request is a HASH: payload_hash, code, reservation_id.
func (k Keys) Request(requestID string) string { return k.prefix + "req:" + requestID }

// Reservation is a HASH with the fields of 8.1 and activity_version.
func (k Keys) Reservation(reservationID string) string { return k.prefix + "resv:" + reservationID }

// ActivityIndexKey is a SET of "activity:sku" for every warmed activity until
// some time after its end, by which scanners and gates find what to look after.
const ActivityIndexKey = "seckill:activities"
