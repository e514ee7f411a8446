package stack

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// RocketMQVersion is the version that rocketmq/pom.xml names.
const RocketMQVersion = "5.5.0"

//go:embed rocketmq/pom.xml
var rocketmqPOM []byte

// ErrNotInstalled is wrapped by the error for a server that is not on this machine.
var ErrNotInstalled = errors.New("not installed")

// Binaries says where the servers' programs are. Empty fields are looked for where setup.sh puts them.
type Binaries struct {
	// RedisServer and Java are files, or names found in PATH.
	RedisServer, Java string
	// PostgresBin is the folder of initdb and postgres; RocketMQLib that of RocketMQ's jars.
	PostgresBin, RocketMQLib string
}

// find fills the empty fields and checks that all is there.
func (b Binaries) find() (Binaries, error) {
	if b.PostgresBin == "" {
		b.PostgresBin = "/usr/lib/postgresql/15/bin"
	}
	if b.RocketMQLib == "" {
		cache, err := cacheDir()
		if err != nil {
			return b, err
		}
		b.RocketMQLib = filepath.Join(cache, "rocketmq-"+RocketMQVersion, "lib")
	}
	var err error
	if b.RedisServer, err = program(b.RedisServer, "redis-server", "redis-server"); err != nil {
		return b, err
	}
	if b.Java, err = program(b.Java, "java", "openjdk-17-jre-headless"); err != nil {
		return b, err
	}
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := program(filepath.Join(b.PostgresBin, name), "", "postgresql-15"); err != nil {
			return b, err
		}
	}
	// The pom is laid beside the jars when all of them are there.
	if _, err := os.Stat(filepath.Join(filepath.Dir(b.RocketMQLib), "pom.xml")); err != nil {
		return b, fmt.Errorf("stack: RocketMQ %s is %w in %s: run make setup", RocketMQVersion, ErrNotInstalled, b.RocketMQLib)
	}
	return b, nil
}

func program(path, name, pkg string) (string, error) {
	if path == "" {
		path = name
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("stack: %s is %w: run make setup, or install the package %s", path, ErrNotInstalled, pkg)
	}
	return found, nil
}

// cacheDir is where setup.sh puts what it downloads; the same rule as there.
func cacheDir() (string, error) {
	if dir := os.Getenv("HOTSKU_CACHE"); dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/cache/hotsku", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("stack: find the cache folder: %w", err)
	}
	return filepath.Join(dir, "hotsku"), nil
}
