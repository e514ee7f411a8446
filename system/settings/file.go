package settings

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

// fileLimit bounds a configuration file.
const fileLimit = 1 << 20 // bytes

// Known are the keys that each section may have: a section is a command, its
// keys are the command's flags. At the file's top any of them may stand.
type Known map[string][]string

// File is a configuration file that was read and whose keys are all known.
type File struct {
	path     string
	top      map[string]entry
	sections map[string]map[string]entry
}

// entry is one key's value.
type entry struct {
	values []string
	list   bool
	line   int
}

// find is what the file says for a command.
func (f *File) find(section, key string) (entry, bool) {
	if f == nil {
		return entry{}, false
	}
	if e, ok := f.sections[section][key]; ok {
		return e, true
	}
	e, ok := f.top[key]
	return e, ok
}

// Read reads a YAML file of keys, and sections of keys:
//
//	redis: 127.0.0.1:6379
//	token-key: [k2:SECRET, k1:SECRET]
//	orders:
//	  listen: 127.0.0.1:8081
//
// An error names the file, the line and, for an unknown key, the nearest one.
func Read(path string, known Known) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, fileLimit+1))
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	if len(text) > fileLimit {
		return nil, fmt.Errorf("configuration file %s: longer than %d bytes", path, fileLimit)
	}
	return parse(path, text, known)
}

func parse(path string, text []byte, known Known) (*File, error) {
	f := &File{path: path, top: make(map[string]entry), sections: make(map[string]map[string]entry)}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return f, nil // empty, or only comments
	}
	everything := make(map[string]bool)
	for _, keys := range known {
		for _, k := range keys {
			everything[k] = true
		}
	}
	top := slices.Sorted(maps.Keys(everything))
	names := slices.Concat(top, slices.Sorted(maps.Keys(known)))
	err := f.pairs(doc.Content[0], func(key *yaml.Node, value *yaml.Node) error {
		section, isSection := known[key.Value]
		if !isSection || value.Kind != yaml.MappingNode {
			if isSection && !everything[key.Value] {
				return f.at(key, "%q is a command: its keys belong below it", key.Value)
			}
			return f.keep(f.top, key, value, top, names, "")
		}
		own := make(map[string]entry)
		f.sections[key.Value] = own
		return f.pairs(value, func(k, v *yaml.Node) error { return f.keep(own, k, v, section, section, " of "+key.Value) })
	})
	return f, err
}

// pairs calls each with the keys and values of a mapping, in order.
func (f *File) pairs(n *yaml.Node, each func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return f.at(n, "want lines of key: value")
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			return f.at(key, "a key must be a word")
		case seen[key.Value]:
			return f.at(key, "%q is there twice", key.Value)
		}
		seen[key.Value] = true
		if err := each(key, value); err != nil {
			return err
		}
	}
	return nil
}

// keep puts a key's value into dst if the key is one of keys; names are what
// it may have been meant to be.
func (f *File) keep(dst map[string]entry, key, value *yaml.Node, keys, names []string, of string) error {
	if !slices.Contains(keys, key.Value) {
		if near := Nearest(key.Value, names); near != "" {
			return f.at(key, "unknown key %q%s; nearest is %q", key.Value, of, near)
		}
		return f.at(key, "unknown key %q%s", key.Value, of)
	}
	e := entry{line: value.Line}
	switch value.Kind {
	case yaml.ScalarNode:
		if value.Tag == "!!null" {
			return f.at(key, "%q has no value", key.Value)
		}
		e.values = []string{value.Value}
	case yaml.SequenceNode:
		e.list = true
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				return f.at(item, "%q: each item must be a plain value", key.Value)
			}
			e.values = append(e.values, item.Value)
		}
		if len(e.values) == 0 {
			return f.at(key, "%q is an empty list", key.Value)
		}
	default:
		return f.at(value, "%q must be a plain value or a list of them", key.Value)
	}
	dst[key.Value] = e
	return nil
}

func (f *File) at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", f.path, n.Line, fmt.Sprintf(format, args...))
}
