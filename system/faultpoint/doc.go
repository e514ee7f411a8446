// Package faultpoint holds the named points where a chaos build may kill or
// delay the process. Without the build tag "chaos" Hit is an empty function
// the compiler inlines away, and Arm refuses: production cannot be armed.
//
// In a chaos build each point counts how often it was reached; an armed point
// appends one line to its file, synced, before it acts, so that a SIGKILL
// leaves evidence of itself.
package faultpoint
