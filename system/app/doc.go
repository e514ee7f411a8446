// Package app is the composition root, the only place that knows all
// packages of the system. A role is one process; Run runs it.
//
// Wiring is what an experiment may replace of it: the harness builds its
// wrong designs as edited copies of DefaultWiring, so that the system itself
// holds no wrong branch.
package app
