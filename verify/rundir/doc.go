// Package rundir is the run directory: the files a run leaves behind and by
// which it is judged, elsewhere and later, without servers (contracts.md
// section 8). It holds formats only: plan.json, run.json, timeline.jsonl,
// queries.jsonl and the stores/ snapshot, each versioned, written whole and
// read strictly. The request history is loadgen/history's format.
//
// Row files are JSON lines closed by a trailer {"eof":true,"records":N,"crc32c":C}.
// A file without its trailer is truncated: evidence that is missing. A file
// whose count or checksum differs from its trailer was altered: what remains
// is judged, so that a deleted or changed row meets its invariant, and the run
// can never pass.
package rundir
