// Package loadgen is an open-loop HTTP load generator: requests are due by a
// schedule that does not care how the server is doing, and latency runs from
// the time a request was due, not from the time the generator got round to it.
//
// Every scheduled request is accounted for exactly once:
//
//	scheduled = completed + failed + timed_out + dropped + unfinished
//
// and, if a history folder is given, described by one record. Nothing is
// retried. The package knows nothing of what it sends: a [Source] makes whole
// requests, an [Extractor] boils an answer down to a code and a tag.
//
// Subpackages: pace (when requests are due), wire (connections and parsing),
// history (the record of a run). The package imports nothing of the system
// under test.
package loadgen
