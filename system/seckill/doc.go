// Package seckill holds the words of the domain: the command a user submits,
// the codes it is answered with, the states a reservation, an order and an
// inventory token go through, the messages between the parts, and the names
// of Redis keys and fault points. It decides nothing and talks to nobody.
//
// It is the one package of the system that the harness may import, so that
// generator, verifier and product mean the same thing by the same word.
//
// Imports allowed: the standard library and the ULID codec.
package seckill
