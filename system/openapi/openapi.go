// Package openapi holds the description of the HTTP interface of access and
// orders, which both serve under /openapi.yaml. A test holds it against the
// code.
//
// Imports allowed: none.
package openapi

import _ "embed"

// Document is the OpenAPI 3.1 document. Nobody may change it.
//
//go:embed openapi.yaml
var Document []byte
