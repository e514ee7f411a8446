package openapi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hotsku/hotsku/system/access"
	"github.com/hotsku/hotsku/system/openapi"
	"github.com/hotsku/hotsku/system/seckill"
)

// R9.1.2: the document knows every code there is, and no other.
func TestTheDocumentListsEveryCode(t *testing.T) {
	s := load(t)
	var want []string
	for _, c := range seckill.Codes() {
		want = append(want, c.String())
	}
	if diff := cmp.Diff(want, s.enum(t, "Code", "")); diff != "" {
		t.Error(diff)
	}
}

// Each documented answer has its code's status, and each code is documented
// where it can be met. METHOD_NOT_ALLOWED is met by methods that are not.
func TestEachCodeIsDocumentedUnderItsStatus(t *testing.T) {
	s := load(t)
	met := map[string]bool{seckill.CodeMethodNotAllowed.String(): true}
	for path, operations := range s.Paths {
		for method, op := range operations {
			for status := range op.Responses {
				r, ok := s.response(op, status)
				if !ok {
					t.Fatalf("%s %s: response %s is not defined", method, path, status)
				}
				for _, content := range r.Content {
					if content.Schema.Ref == "" {
						continue
					}
					codes := s.enum(t, last(content.Schema.Ref), "code")
					if len(codes) == 0 {
						t.Errorf("%s %s %s: no code", method, path, status)
					}
					for _, name := range codes {
						met[name] = true
						code, ok := seckill.ParseCode(name)
						if !ok || strconv.Itoa(code.HTTPStatus()) != status {
							t.Errorf("%s %s: %s stands under %s, its status is %d", method, path, name, status, code.HTTPStatus())
						}
					}
				}
			}
		}
	}
	for _, c := range seckill.Codes() {
		if !met[c.String()] {
			t.Errorf("no operation answers %s", c)
		}
	}
}

func TestTheDocumentHasTheAnswersFields(t *testing.T) {
	s := load(t)
	var want []string
	answer := reflect.TypeFor[seckill.Answer]()
	for i := range answer.NumField() {
		name, _, _ := strings.Cut(answer.Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	var schema struct{ Properties map[string]any }
	node := s.Components.Schemas["Answer"]
	if err := node.Decode(&schema); err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range schema.Properties {
		got = append(got, name)
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Error(diff)
	}
}

// The states are those of system/seckill, read from its source.
func TestTheDocumentListsEveryStatus(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../seckill/state.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{seckill.StatusCompensated}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind, ok := spec.Type.(*ast.Ident)
		if !ok || kind.Name != "ReservationStatus" && kind.Name != "OrderStatus" {
			return true
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, text)
		}
		return true
	})
	slices.Sort(want)
	want = slices.Compact(want) // EXPIRED and CANCELLED are both
	if diff := cmp.Diff(want, sorted(load(t).enum(t, "Status", ""))); diff != "" {
		t.Error(diff)
	}
}

// R7.4.2: the limits a client is told are those of the code.
func TestTheDocumentTellsTheLimits(t *testing.T) {
	words := strings.Fields(string(openapi.Document))
	limits := access.ConfigDefault
	for _, want := range []string{strconv.Itoa(limits.HeadLimitBytes), strconv.Itoa(limits.BodyLimitBytes) + ";",
		strconv.Itoa(int(limits.RequestTimeout.Seconds()))} {
		if !slices.Contains(words, want) {
			t.Errorf("the description does not say %q", want)
		}
	}
	request := load(t).schema(t, "RequestId")
	if *request.MaxLength != seckill.RequestIDMaxBytes {
		t.Errorf("request_id may have %d bytes, not %d", seckill.RequestIDMaxBytes, *request.MaxLength)
	}
}

// The document and the code agree on what a good request id, reservation id
// and order id are.
func TestTheDocumentsIDsAreTheCodes(t *testing.T) {
	s := load(t)
	request, reservation, order := s.schema(t, "RequestId"), s.schema(t, "ReservationId"), s.schema(t, "OrderId")
	text := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9_.-]{0,70}`), rapid.StringMatching(`(resv_|ord_|RESV_)?[0-9A-Za-z]{25,27}`),
		rapid.StringMatching(`(resv_|ord_)[0-9A][0-9A-HJKMNP-TV-Z]{25}`), rapid.StringMatching(`(resv_|ord_)[0-7][0-9A-Z]{25}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		id := text.Draw(t, "id")
		for name, c := range map[string][2]bool{
			"request":     {request.Validate(id) == nil, seckill.ValidateRequestID(id) == nil},
			"reservation": {reservation.Validate(id) == nil, seckill.ValidReservationID(id)},
			"order":       {order.Validate(id) == nil, seckill.ValidOrderID(id)},
		} {
			if c[0] != c[1] {
				t.Fatalf("%s id %q: valid for the document: %v, for the code: %v", name, id, c[0], c[1])
			}
		}
	})
}
