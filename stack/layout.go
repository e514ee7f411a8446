package stack

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed redis.conf.tmpl postgresql.conf.tmpl rocketmq/namesrv.conf.tmpl rocketmq/broker.conf.tmpl rocketmq/logback.xml
var templates embed.FS

// layout is what the servers of one stack need to know to be run, kept in its lock file.
type layout struct {
	name string
	// dir holds one folder a server.
	dir              string
	ports            Ports
	proxied          bool
	postgresPassword string
	detached         bool
	binaries         Binaries
	nice             map[string]int
}

func (l layout) folder(server string) string { return filepath.Join(l.dir, server) }

func (l layout) log(server string) string { return filepath.Join(l.dir, server, server+".log") }

// render writes the template to a file of this stack.
func render(name, to string, data any) error {
	t, err := template.ParseFS(templates, name)
	if err != nil {
		return fmt.Errorf("parse template %s: %w", name, err)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := t.Option("missingkey=error").Execute(f, data); err != nil {
		_ = f.Close()
		return fmt.Errorf("write %s: %w", to, err)
	}
	return f.Close()
}
