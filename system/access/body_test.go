package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
)

func TestParseOrder(t *testing.T) {
	for rule, c := range map[string]struct{ give, field string }{
		"any order of fields":        {`{"quantity":1,"request_id":"r","sku_id":2,"activity_id":1}`, ""},
		"white space":                {" {\n\t\"activity_id\" : 1 , \"sku_id\":2,\"request_id\":\"r\",\r\"quantity\":1 } ", ""},
		"an escaped request id":      {`{"activity_id":1,"sku_id":2,"request_id":"\u0072","quantity":1}`, ""},
		"an escaped field name":      {`{"activity_\u0069d":1,"sku_id":2,"request_id":"r","quantity":1}`, ""},
		"a field twice":              {`{"activity_id":1,"activity_id":1,"sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"an unknown field":           {`{"activity_id":1,"sku_id":2,"request_id":"r","quantity":1,"x":1}`, "x"},
		"a string for a number":      {`{"activity_id":"1","sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"a fraction":                 {`{"activity_id":1.5,"sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"a fraction of nothing":      {`{"activity_id":1.0,"sku_id":20e-1,"request_id":"r","quantity":0.1E+1}`, ""},
		"a fraction by exponent":     {`{"activity_id":15e-1,"sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"an exponent":                {`{"activity_id":1e3,"sku_id":2,"request_id":"r","quantity":1}`, ""},
		"an endless exponent":        {`{"activity_id":1e99999999999999999999,"sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"19 digits by exponent":      {`{"activity_id":1e18,"sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"a point without a fraction": {`{"activity_id":1.,"sku_id":2,"request_id":"r","quantity":1}`, "body"},
		"an e without an exponent":   {`{"activity_id":1e+,"sku_id":2,"request_id":"r","quantity":1}`, "body"},
		"null":                       {`{"activity_id":null,"sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"a number over 64 bits":      {`{"activity_id":99999999999999999999,"sku_id":2,"request_id":"r","quantity":1}`, "activity_id"},
		"a number for a string":      {`{"activity_id":1,"sku_id":2,"request_id":5,"quantity":1}`, "request_id"},
		"a leading zero":             {`{"activity_id":01,"sku_id":2,"request_id":"r","quantity":1}`, "body"},
		"a trailing comma":           {`{"activity_id":1,"sku_id":2,"request_id":"r","quantity":1,}`, "body"},
		"something after it":         {`{"activity_id":1,"sku_id":2,"request_id":"r","quantity":1}{}`, "body"},
		"an array":                   {`[1]`, "body"},
		"an unfinished string":       {`{"activity_id":1,"sku_id":2,"request_id":"r`, "body"},
		"a string that is not UTF-8": {"{\"activity_id\":1,\"sku_id\":2,\"request_id\":\"\xff\",\"quantity\":1}", "body"},
		"a control character":        {"{\"activity_id\":1,\"sku_id\":2,\"request_id\":\"\x01\",\"quantity\":1}", "body"},
	} {
		_, err := parseOrder([]byte(c.give))
		var field *seckill.FieldError
		if errors.As(err, &field) != (c.field != "") || field != nil && field.Field != c.field {
			t.Errorf("%s: error is %v, want one about %q", rule, err, c.field)
		}
	}
}

// What parseOrder accepts is what encoding/json reads, and what it refuses
// as malformed encoding/json refuses too.
func FuzzParseOrder(f *testing.F) {
	for _, s := range []string{`{"activity_id":1,"sku_id":2,"request_id":"r","quantity":1}`, `{}`, `{"activity_id":-5,"x":"\""}`,
		`{"request_id":"\ud800","activity_id":1,"sku_id":2,"quantity":1}`, `{"a`, `{"activity_id":1 ,"sku_id" :2}`, `{"activity_id":1.0,"sku_id":20e-1,"request_id":"r","quantity":0.1E+1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := parseOrder(bytes.Clone(body))
		if err != nil {
			var field *seckill.FieldError
			if !errors.As(err, &field) || field.Field == "" || field.Reason == "" {
				t.Fatalf("error is %v, want a field and a reason", err)
			}
			if field.Field == "body" && strings.Contains(field.Reason, "well-formed") && json.Valid(body) && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
				// Nested values are the one valid JSON no field takes.
				if !bytes.ContainsAny(body, "[]") && bytes.Count(body, []byte("{")) == 1 && bytes.IndexFunc(body, func(r rune) bool { return r == 0xfffd }) < 0 {
					t.Fatalf("%q is valid JSON, refused: %v", body, err)
				}
			}
			return
		}
		var want struct {
			ActivityID json.Number `json:"activity_id"`
			SKUID      json.Number `json:"sku_id"`
			RequestID  string      `json:"request_id"`
			Quantity   json.Number `json:"quantity"`
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("%q was accepted, encoding/json says %v", body, err)
		}
		if !same(o.activityID, want.ActivityID) || !same(o.skuID, want.SKUID) || !same(o.quantity, want.Quantity) || string(o.requestID) != want.RequestID {
			t.Fatalf("%q is %+v, encoding/json reads %+v", body, o, want)
		}
	})
}

// same compares exactly, whatever the number's form.
func same(got int64, want json.Number) bool {
	exact, ok := new(big.Rat).SetString(want.String())
	return ok && exact.Cmp(new(big.Rat).SetInt64(got)) == 0
}
