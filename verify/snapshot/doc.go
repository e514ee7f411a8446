// Package snapshot copies the live stores into the stores/ folder of a run
// directory: every key of the planned activities in Redis with their change
// logs, their rows in every table of PostgreSQL with commit times, every create
// message the broker stored, and how far each group has consumed. It also waits for
// quiescence, the moment from which on nothing may be missing any more.
//
// It changes nothing: Redis is scanned, PostgreSQL read in one REPEATABLE
// READ snapshot, and the broker's queues are pulled by queue and offset
// without joining a consumer group, so that no real group rebalances.
//
// Imports allowed: rundir, system/seckill, stack/remoting.
package snapshot
