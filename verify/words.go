package verify

import "strconv"

// clock writes nanoseconds as milliseconds, in full.
func clock(ns int64) string {
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 3, 64) + " ms"
}
