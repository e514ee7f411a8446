// Package lua embeds the Redis scripts. Each is bounded: it touches a fixed
// number of keys a request and scans nothing (specification 6.5, 10.2).
// Redis has no rollback, so every script decides first and writes after, the
// stock before all else: an error half-way may undersell, never oversell.
package lua

import "embed"

// FS holds the scripts by file name.
//
//go:embed *.lua
var FS embed.FS
