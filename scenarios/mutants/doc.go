// Package mutants is the list of wrong designs (specification 15 and its
// kin), and judges whether a scenario found one out: a verifier that passes
// them proves nothing about the right design. A mutant is the product with
// one part replaced, run by the binary seckill-mutant; package wirings has the
// parts. It notes in a file whenever it does the wrong thing, so that one that
// never came to it counts as inconclusive, not as caught.
//
// Imports allowed: verify/rundir, scenarios.
package mutants
