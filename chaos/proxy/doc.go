// Package proxy stands between the product and one store. Clients meet a
// relay, which counts what passes, follows the protocol, cuts, refuses, and
// loses single replies; behind it a toxiproxy in this process bends the
// streams by toxics; behind that is the store:
//
//	client ⇄ relay ⇄ toxiproxy ⇄ store
//
// Everything a proxy did to the traffic can be read from it, so that a fault
// can prove that it bit.
//
// Imports allowed: chaos/frame.
package proxy
