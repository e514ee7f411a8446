// Package verify judges a run directory: was every promise kept, by the
// evidence alone, elsewhere and later, without servers.
//
// It trusts plan.json, history/, stores/ and timeline.jsonl, and recomputes
// every figure a verdict rests on. Each invariant (invariants.md) has a file
// of its own that says what is promised. A check says how many things it
// looked at: looking at none is not_checked, never held. Evidence that is
// missing, empty or cut off leaves the invariants that need it not_checked,
// naming file and offset. A file whose rows were changed is judged as it is,
// and a run with such a file never passes.
//
// Memory is bounded by the stores and by the answers about what they hold:
// the history is streamed twice, and of the millions that were refused
// nothing is kept.
//
// Imports allowed: rundir, loadgen/history, system/seckill.
package verify
