// Package reservation is the Redis side: reserve, mark sent, claim what is
// due, apply decisions, look up, and read the change log. Redis is the fast
// filter in front, never the source of truth: PostgreSQL decides every end of
// a reservation (architecture.md section 4).
//
// Every change is one Lua script over keys of one hash slot. The stock is
// changed by exactly two of them: reserve, and apply for a compensation.
//
// Imports allowed: system/seckill, go-redis.
package reservation
