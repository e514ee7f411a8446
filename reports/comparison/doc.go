// Package comparison says whether one set of runs differs from another by more
// than runs of the same thing differ from each other.
//
// Runs of one build on one machine spread; a figure of two runs alone says
// nothing about what is behind it. So a side is a set of runs, each run gives
// one sample of a figure, and two conditions must hold before a figure counts
// as changed: the medians differ by the tolerance at least, and a
// Mann-Whitney U test, which assumes nothing about how runs spread, finds it
// unlikely to be chance, corrected by Holm for the number of figures judged.
//
// Imports allowed: verify for the figures' names, verify/rundir.
package comparison
