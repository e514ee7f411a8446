package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/system/admission"
	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/faultpoint"
	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/system/settings"
	"github.com/hotsku/hotsku/system/systest"
)

// As a process the test binary is the command itself.
const asCommand = "SECKILL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main(app.DefaultWiring(faultpoint.Hit), os.Args[1:]))
	}
	// hotsku up --env exports settings of the command itself, too.
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, settings.Prefix) {
			os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}

// reference is the command as it is shipped.
func reference() *cobra.Command { return newRoot(app.DefaultWiring(faultpoint.Hit)) }

// seckillRun runs the command in this process, with no SECKILL_ variables but
// the test's.
func seckillRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	root := reference()
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	code = run(ctx, root)
	return code, out.String(), errs.String()
}

const tokenKey = "k1:00112233445566778899aabbccddeeff"

// Bad input is one line that says what to do, exit 64, and nothing started.
func TestCommandLinesThatCannotBeObeyed(t *testing.T) {
	for line, hint := range map[string]string{
		"cashier":                                "--help lists the commands",
		"acess":                                  `unknown command "acess" (did you mean access?); seckill --help lists the commands`,
		"activity shwo":                          `unknown command "shwo" (did you mean show?)`,
		"access --lisen x":                       "unknown flag: --lisen (did you mean --listen?); seckill access --help lists the flags",
		"access surplus":                         "takes no argument",
		"access --bogus":                         "--help lists the flags",
		"access --drain soon":                    `--drain "soon": must be a length of time such as 500ms, 10s or 2m; seckill access --help lists the flags`,
		"consumer --workers two":                 `--workers "two": must be a whole number`,
		"access":                                 "--redis",
		"access --redis 127.0.0.1:1":             "--name-server",
		"access --redis nowhere --name-server 1": "host:port",
		"scanner --redis 127.0.0.1:1 --name-server localhost:9876":                                        "IP:port",
		"scanner --redis 127.0.0.1:1 --name-server 127.0.0.1:1 --poll 0s":                                 "poll",
		"access --redis 127.0.0.1:1 --name-server 127.0.0.1:1":                                            "--token-key",
		"access --redis 127.0.0.1:1 --name-server 127.0.0.1:1 --token-key k1:zz":                          "not hex",
		"access --redis 127.0.0.1:1 --name-server 127.0.0.1:1 --token-key " + tokenKey + " --admin :9090": "loopback",
		"access --redis 127.0.0.1:1 --name-server 127.0.0.1:1 --token-key " + tokenKey + " --in-flight 0": "in-flight",
		"access --log-level loud":                                                              "--log-level",
		"access --id-seed 00":                                                                  "--id-seed",
		"access --faultpoint access.after-reserve=kill":                                        "unknown flag",
		"consumer --name-server 127.0.0.1:1":                                                   "--postgres",
		"consumer --name-server 127.0.0.1:1 --postgres nonsense":                               "check --postgres",
		"consumer --postgres postgres://x@127.0.0.1:1/y --name-server 127.0.0.1:1 --workers 0": "workers",
		"migrate":                     "--postgres",
		"migrate --postgres nonsense": "check --postgres",
		"migrate --postgres x --name-server 127.0.0.1:1":                      "belong together",
		"migrate --postgres x --name-server a:1 --broker b:1":                 "IP:port",
		"migrate --postgres x --name-server 127.0.0.1:1 --broker localhost:1": "--broker",
		"activity sell":                                                                "unknown command",
		"activity create --activity 1 --sku 2":                                         "stock",
		"activity create --activity 1 --sku 2 --stock -1":                              "stock",
		"activity create --activity 1 --sku 2 --stock 1 --tokens 2":                    "tokens",
		"activity create --activity 1 --sku 2 --stock 1 --starts tomorrow":             "2026-11-11T00:00:00Z",
		"activity create --activity 1 --sku 2 --stock 1 --for 0s":                      "--for 0s: must be positive",
		"activity create --activity 1 --sku 2 --stock 1 --starts 2020-01-01T00:00:00Z": "over already",
		"activity create --activity 1 --sku 2 --stock 1":                               "--postgres",
		"activity create --warm-only --activity 1 --sku 2 --stock 1":                   "exclude each other",
		"activity create --warm-only --activity 1":                                     "--sku",
		"activity close --activity 1":                                                  "--sku",
		"activity close --activity 1 --sku 2":                                          "--redis",
		"activity show":                                                                "--activity",
		"activity show --activity 1":                                                   "--postgres",
		"token --user 1":                                                               "--activity",
		"token --user 1 --activity 2":                                                  "--token-key",
		"token --user 1 --activity 2 --token-key " + tokenKey + " --ttl -1s":           "--ttl",
	} {
		t.Run(line, func(t *testing.T) {
			code, out, errs := seckillRun(t, strings.Fields(line)...)
			if code != 64 || out != "" || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "seckill: ") || !strings.Contains(errs, hint) {
				t.Errorf("exit %d\nout %q\nerr %q\nwant exit 64 and one line with %q", code, out, errs, hint)
			}
		})
	}
}

// R7.4.1: servers that are not there are exit 2 and one line with the address.
func TestServersThatAreNotThere(t *testing.T) {
	const none = "127.0.0.1:1"
	db := "postgres://nobody@" + none + "/none"
	for _, line := range []string{
		"access --redis " + none + " --name-server " + none + " --token-key " + tokenKey,
		"scanner --redis " + none + " --name-server " + none + " --postgres " + db,
		"consumer --postgres " + db + " --name-server " + none,
		"outbox --redis " + none + " --postgres " + db + " --name-server " + none,
		"orders --redis " + none + " --postgres " + db + " --token-key " + tokenKey,
		"migrate --postgres " + db,
		"activity create --activity 1 --sku 2 --stock 1 --postgres " + db + " --redis " + none,
		"activity close --activity 1 --sku 2 --postgres " + db + " --redis " + none,
		"activity show --activity 1 --postgres " + db,
	} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			code, out, errs := seckillRun(t, strings.Fields(line)...)
			if code != 2 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, none) {
				t.Errorf("exit %d\nout %q\nerr %q\nwant exit 2 and one line with %s", code, out, errs, none)
			}
		})
	}
}

// access and orders run on one machine as they come.
func TestDefaultAddressesDoNotCollide(t *testing.T) {
	stores := "--redis 127.0.0.1:1 --token-key " + tokenKey
	for line, addr := range map[string]string{
		"config access --name-server 127.0.0.1:1 " + stores:             "127.0.0.1:8080",
		"config orders --postgres postgres://x@127.0.0.1:1/y " + stores: "127.0.0.1:8081",
	} {
		if code, out, errs := seckillRun(t, strings.Fields(line)...); code != 0 || !strings.Contains(out, "\nlisten: "+addr+" # default\n") {
			t.Errorf("%s: exit %d, %s%s; want it to listen at %s", line, code, out, errs, addr)
		}
	}
}

// A person who replays with "the new build" can ask which one it is.
func TestVersion(t *testing.T) {
	if code, out, errs := seckillRun(t, "--version"); code != 0 || errs != "" || !strings.HasPrefix(out, "seckill version ") || !strings.Contains(out, " go1.") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// Help names every stage that may be switched off.
func TestHelpNamesTheStages(t *testing.T) {
	_, out, _ := seckillRun(t, "access", "--help")
	for _, s := range admission.Stages()[1:] {
		if _, without, _ := strings.Cut(out, "--without "); !strings.Contains(strings.SplitN(without, "\n", 2)[0], s.String()) {
			t.Errorf("--help does not name %s", s)
		}
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, command := range []string{"", "access", "consumer", "scanner", "outbox", "orders", "migrate", "activity create", "activity close", "activity show", "token"} {
		code, out, errs := seckillRun(t, append(strings.Fields(command), "--help")...)
		if code != 0 || errs != "" || !strings.Contains(out, "Examples:\n") || !strings.Contains(out, "seckill "+command) {
			t.Errorf("seckill %s --help: exit %d, err %q\n%s", command, code, errs, out)
		}
	}
	if code, out, _ := seckillRun(t); code != 0 || !strings.Contains(out, "Available Commands:") {
		t.Errorf("seckill alone: exit %d\n%s", code, out)
	}
}

// What the package that parses numbers calls itself is no word of ours: not
// from the command line, nor from the environment.
func TestNoFlagErrorSpeaksOfItsParser(t *testing.T) {
	tried := 0
	var try func(path []string, cmd *cobra.Command)
	try = func(path []string, cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "string" || strings.HasPrefix(f.Value.Type(), "string") || f.Name == "help" {
				return
			}
			tried++
			for _, value := range []string{"!", "99999999999999999999", "1e9", "5"} {
				_, _, errs := seckillRun(t, append(slices.Clone(path), "--"+f.Name+"="+value)...)
				t.Setenv(settings.Variable(f.Name), value)
				_, _, env := seckillRun(t, path...)
				os.Unsetenv(settings.Variable(f.Name))
				for _, e := range []string{errs, env} {
					if strings.Contains(e, "strconv") || strings.Contains(e, "time: ") || strings.Contains(e, "invalid argument") || strings.Count(e, "\n") != 1 {
						t.Errorf("%v --%s=%s: %q", path, f.Name, value, e)
					}
				}
			}
		})
		for _, c := range cmd.Commands() {
			if c.Name() != "config" && c.Name() != "help" {
				try(append(slices.Clone(path), c.Name()), c)
			}
		}
	}
	try(nil, reference())
	if tried < 60 {
		t.Errorf("%d flags were tried", tried)
	}
}

// Others can read a command line: no example gives a secret in one.
func TestNoExampleGivesASecretInACommandLine(t *testing.T) {
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, secret := range []string{"--token-key", "--redis-password", "--mq-secret-key"} {
			if strings.Contains(cmd.Example, secret) {
				t.Errorf("%s: the example gives %s", cmd.CommandPath(), secret)
			}
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(reference())
}

// Every flag can be given by environment; a flag wins over it.
func TestFlagsFromTheEnvironment(t *testing.T) {
	t.Setenv("SECKILL_TOKEN_KEY", tokenKey)
	t.Setenv("SECKILL_USER", "30001")
	t.Setenv("SECKILL_ACTIVITY", "7")
	for _, c := range []struct {
		args []string
		user int64
	}{{nil, 30001}, {[]string{"--user", "5"}, 5}} {
		code, out, errs := seckillRun(t, append([]string{"token"}, c.args...)...)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d: %s", code, errs)
		}
		key := seckill.TokenKey{ID: "k1", Secret: []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")}
		codec, err := seckill.NewTokenCodec(key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := codec.Verify([]byte(strings.TrimSuffix(out, "\n")), time.Now().Unix())
		if err != nil || got.UserID != c.user || got.ActivityID != 7 || time.Until(time.Unix(got.ExpiresAt, 0)) > 10*time.Minute {
			t.Errorf("token %q is %+v, %v", out, got, err)
		}
	}
	t.Setenv("SECKILL_USER", "someone")
	if code, _, errs := seckillRun(t, "token"); code != 64 || !strings.Contains(errs, "SECKILL_USER") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// The commands share the variable behind --log-level: each must have the
// default that its help promises.
func TestTheDefaultLogLevelIsInfo(t *testing.T) {
	root := reference()
	for _, c := range root.Commands() {
		if f := c.Flags().Lookup("log-level"); f != nil && (f.DefValue != "info" || f.Value.String() != "info") {
			t.Errorf("%s: default %q, value %q", c.Name(), f.DefValue, f.Value.String())
		}
	}
}

// command runs the test binary as the command.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	// The RocketMQ client's Shutdown races with its own background work.
	cmd.Env = append(os.Environ(), asCommand+"=1", "SECKILL_REDIS="+systest.Redis(t), "SECKILL_NAME_SERVER="+systest.NameServer(t),
		"SECKILL_TOKEN_KEY="+tokenKey, "GORACE=exitcode=0 log_path="+os.DevNull)
	return cmd
}

// done runs a command to its end and wants exit 0.
func done(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args[1:], err, out, errs.String())
	}
	return string(out)
}
