package scenarios

import (
	"os"
	"path/filepath"
	"testing"
)

// A panic is found by Go's last words and by the consumer's, and nothing else
// is taken for one.
func TestALogIsSearchedForPanics(t *testing.T) {
	for name, c := range map[string]struct {
		log           string
		lines, panics int64
		first         string
	}{
		"an empty log": {"", 0, 0, ""},
		"none":         {"{\"msg\":\"ready\"}\n{\"msg\":\"consumer shutdown crashed\",\"panic\":\"x\"}\n", 2, 0, ""},
		"a crash":      {"{\"msg\":\"ready\"}\npanic: nil map\n\ngoroutine 1 [running]:\n", 3, 1, "panic: nil map"},
		"the runtime":  {"fatal error: concurrent map writes\n", 1, 1, "fatal error: concurrent map writes"},
		"a handler, twice, cut short": {"{\"msg\":\"handler panicked\",\"panic\":\"a\"}\n{\"msg\":\"handler panicked\"", 2, 2,
			"{\"msg\":\"handler panicked\",\"panic\":\"a\"}"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.log")
			if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			lines, panics, first, err := searchLog(path)
			if err != nil || lines != c.lines || panics != c.panics || first != c.first {
				t.Errorf("%d lines, %d panics, first %q, %v", lines, panics, first, err)
			}
		})
	}
}
