// Package access is the edge: it parses, admits and answers (specification
// 7.4), and hands what may win to package submit.
//
// It has its own serving loop. One connection, a gateway's upstream, carries
// many requests; a server that takes them one after another makes each wait
// for the reserve before it (P99 of seconds at 300k/s). Here a connection's
// requests are decided concurrently and answered in order: refusals inline,
// reservations parked in the connection's ordered reply queue.
//
// Everything is bounded: head, body, time to send a request, replies parked a
// connection, bytes waiting for a slow reader, connections.
//
// Imports allowed: system/seckill, system/admission, system/openapi, fasthttp's
// request reader.
package access
