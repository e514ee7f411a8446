// Package scenarios says what to run, and runs it: a Scenario is a value,
// readable as a row of a table (load, fleet, faults, what they must hit,
// invariants, limits); Run takes it from nothing to a judged run directory on
// real servers, and leaves nothing running.
//
// Imports allowed: loadgen, chaos, verify, reports, stack, system/seckill.
package scenarios
