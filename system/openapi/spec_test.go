package openapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/hotsku/hotsku/system/openapi"
)

// spec is the document, read.
type spec struct {
	Paths      map[string]map[string]operation
	Components struct {
		Responses map[string]response
		Headers   map[string]struct{ Required bool }
		Schemas   map[string]yaml.Node
	}
	schemas *jsonschema.Compiler
}

type operation struct {
	OperationID string `yaml:"operationId"`
	Responses   map[string]response
}

type response struct {
	Ref     string            `yaml:"$ref"`
	Headers map[string]schema // by reference
	Content map[string]struct{ Schema schema }
}

type schema struct {
	Ref string `yaml:"$ref"`
}

// resource is the document's name for references into it.
const resource = "openapi.yaml"

func load(t *testing.T) *spec {
	t.Helper()
	s := &spec{schemas: jsonschema.NewCompiler()}
	if err := yaml.Unmarshal(openapi.Document, s); err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := yaml.Unmarshal(openapi.Document, &tree); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.schemas.AddResource(resource, doc); err != nil {
		t.Fatal(err)
	}
	return s
}

// schema compiles the schema of that name.
func (s *spec) schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	compiled, err := s.schemas.Compile(resource + "#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// response resolves an operation's response of a status.
func (s *spec) response(op operation, status string) (response, bool) {
	r, ok := op.Responses[status]
	if r.Ref != "" {
		r, ok = s.Components.Responses[last(r.Ref)]
	}
	return r, ok
}

func last(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// enum reads a schema's enum, or that of one of its properties.
func (s *spec) enum(t *testing.T, name, property string) []string {
	t.Helper()
	type values struct {
		Enum       []string
		Const      string
		Properties map[string]struct {
			Enum  []string
			Const string
		}
	}
	var v values
	node := s.Components.Schemas[name]
	if err := node.Decode(&v); err != nil {
		t.Fatalf("schema %s: %v", name, err)
	}
	enum, constant := v.Enum, v.Const
	if property != "" {
		enum, constant = v.Properties[property].Enum, v.Properties[property].Const
	}
	if constant != "" {
		return []string{constant}
	}
	return enum
}

// check holds an answer against what the document says of its operation. It
// returns the answer's body.
func (s *spec) check(t *testing.T, method, path string, resp *http.Response) []byte {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	op, ok := s.Paths[path][strings.ToLower(method)]
	if !ok {
		t.Fatalf("%s %s is not documented", method, path)
	}
	r, ok := s.response(op, strconv.Itoa(resp.StatusCode))
	if !ok {
		t.Fatalf("%s %s: status %d is not documented: %s", method, path, resp.StatusCode, body)
	}
	for name, header := range r.Headers {
		if s.Components.Headers[last(header.Ref)].Required && resp.Header.Get(name) == "" {
			t.Errorf("%s %s: status %d without %s", method, path, resp.StatusCode, name)
		}
	}
	content, ok := r.Content[resp.Header.Get("Content-Type")]
	if !ok {
		t.Fatalf("%s %s: status %d is %q, which is not documented", method, path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	if content.Schema.Ref == "" {
		return body
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, body)
	}
	if err := s.schema(t, last(content.Schema.Ref)).Validate(value); err != nil {
		t.Errorf("%s %s: status %d: %s: %v", method, path, resp.StatusCode, body, err)
	}
	return body
}

// sorted is for comparisons of sets.
func sorted(texts []string) []string {
	out := slices.Clone(texts)
	slices.Sort(out)
	return out
}
