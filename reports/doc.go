// Package reports renders a saved run for the people and machines that act on
// it: report.html for people who decide, junit.xml for CI, a table for the
// terminal. Every renderer is a pure function of its Input over an io.Writer:
// it judges nothing, reads no clock, no file and no environment, so the same
// run directory gives the same bytes.
//
// Authoritative store: run.json, written by verify; a figure that was not
// checked is shown as "not checked", never as zero.
//
// Allowed imports: verify/rundir for the formats, system/seckill for the
// meaning of the answer codes.
package reports
