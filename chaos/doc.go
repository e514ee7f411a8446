// Package chaos breaks things on purpose and writes down what it hit: a fault
// is a small value, a timeline is the evidence. A fault that did not bite
// makes its run inconclusive, never passed; what must bite is in the plan and
// judged by package verify.
//
// Imports allowed: chaos/proxy, system/seckill for the fault points' names,
// verify/rundir for the timeline's format.
package chaos
