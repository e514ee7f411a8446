package stack

import (
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPOMNamesTheVersionThatIsRun(t *testing.T) {
	var pom struct {
		Version string `xml:"properties>rocketmq.version"`
	}
	if err := xml.Unmarshal(rocketmqPOM, &pom); err != nil {
		t.Fatal(err)
	}
	if pom.Version != RocketMQVersion {
		t.Errorf("pom.xml has %s, the code %s", pom.Version, RocketMQVersion)
	}
}

// setup runs setup.sh with a PATH of these programs only, and returns its exit code and what it said.
func setup(t *testing.T, cache string, programs []string, args ...string) (int, string) {
	t.Helper()
	path := t.TempDir()
	for _, name := range programs {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("%s is needed to play a machine that has it", name)
		}
		if err := os.Symlink(real, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, append([]string{"setup.sh"}, args...)...)
	cmd.Env = []string{"PATH=" + path, "HOTSKU_CACHE=" + cache}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestSetupSaysWhatToInstallWhereItMayNot(t *testing.T) {
	tools := []string{"bash", "id", "sed", "head", "dirname", "cmp"}
	for _, c := range []struct {
		name     string
		programs []string
		args     []string
		code     int
		says     []string
	}{
		{"no apt-get", []string{"java"}, nil, 2, []string{"no apt-get", "redis-server", "maven"}},
		{"only a check", []string{"java"}, []string{"--check"}, 2, []string{"missing", "redis-server"}},
		{"unknown argument", nil, []string{"--force"}, 64, []string{"--force", "usage"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			code, said := setup(t, cache, append(c.programs, tools...), c.args...)
			if code != c.code || strings.Count(said, "\n") != 1 {
				t.Errorf("exit code %d, said %q; want %d and one line", code, said, c.code)
			}
			for _, s := range c.says {
				if !strings.Contains(said, s) {
					t.Errorf("said %q, want %q in it", said, s)
				}
			}
			if strings.Contains(said, "openjdk") {
				t.Errorf("said %q, but Java is there", said)
			}
			if _, err := os.Stat(cache); err == nil {
				t.Error("the cache folder was made")
			}
		})
	}
}

func TestSetupHasNothingToDoWhenAllIsThere(t *testing.T) {
	needServers(t)
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	code, said := setup(t, cache, []string{"bash", "id", "sed", "head", "dirname", "cmp", "java", "redis-server"})
	if code != 0 || said != "" {
		t.Errorf("exit code %d, said %q", code, said)
	}
}
