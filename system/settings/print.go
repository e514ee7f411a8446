package settings

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Secrecy says which part of a flag's value nobody may read.
type Secrecy string

// What may be secret.
const (
	Whole      Secrecy = "whole"       // a password
	AfterColon Secrecy = "after-colon" // ID:SECRET
	InURL      Secrecy = "in-url"      // the password of a connection string
)

const secrecyAnnotation = "settings-secret"

// masked stands for a secret.
const masked = "***"

// Secret marks a flag whose value is printed masked.
func Secret(flags *pflag.FlagSet, name string, s Secrecy) {
	if f := flags.Lookup(name); f != nil {
		if f.Annotations == nil {
			f.Annotations = make(map[string][]string)
		}
		f.Annotations[secrecyAnnotation] = []string{string(s)}
	}
}

// IsSecret says whether some of the flag's value is masked.
func IsSecret(f *pflag.Flag) bool { return len(f.Annotations[secrecyAnnotation]) > 0 }

// Print writes the values of flags as a configuration file that says where
// each came from. Secrets are masked.
func Print(w io.Writer, flags *pflag.FlagSet, sources map[string]Source) error {
	doc := yaml.Node{Kind: yaml.MappingNode}
	flags.VisitAll(func(f *pflag.Flag) {
		source, ours := sources[f.Name]
		if !ours {
			return
		}
		value := yaml.Node{Kind: yaml.ScalarNode}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
			for _, item := range list.GetSlice() {
				value.Content = append(value.Content, scalar(f, item))
			}
		} else {
			value = *scalar(f, f.Value.String())
		}
		value.LineComment = string(source)
		doc.Content = append(doc.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Name}, &value)
	})
	if len(doc.Content) == 0 {
		return nil
	}
	enc := yaml.NewEncoder(w)
	if err := enc.Encode(&doc); err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	return enc.Close()
}

func scalar(f *pflag.Flag, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	if s := f.Annotations[secrecyAnnotation]; len(s) > 0 && value != "" {
		n.Value = mask(Secrecy(s[0]), value)
	}
	if f.Value.Type() == "string" || n.Value == "" || strings.Contains(f.Value.Type(), "tring") {
		n.Tag = "!!str" // quoted where it would read as something else
	}
	return n
}

// passwordWord finds passwords in a connection string of words, and in the
// query of one that is a URL.
var passwordWord = regexp.MustCompile(`(?i)((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)`)

func mask(s Secrecy, value string) string {
	switch s {
	case AfterColon:
		id, _, ok := strings.Cut(value, ":")
		if !ok {
			return masked // not what it should be: nobody knows which part is the secret
		}
		return id + ":" + masked
	case InURL:
		if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
			if _, has := u.User.Password(); has {
				u.User = url.UserPassword(u.User.Username(), masked)
			}
			u.RawQuery = passwordWord.ReplaceAllString(u.RawQuery, "${1}"+masked)
			return strings.Replace(u.String(), url.QueryEscape(masked), masked, 1)
		}
		if strings.Contains(value, "://") {
			return masked
		}
		return passwordWord.ReplaceAllString(value, "${1}"+masked)
	default:
		return masked
	}
}
