package systest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// Who is let in by the secured servers.
const (
	SecuredUser     = "seckill"
	SecuredPassword = "k9-Vb2zQ_geheim"
)

// SecuredRedis starts a Redis that speaks TLS only, wants a certificate of the
// same authority, and lets in nobody but SecuredUser. It returns host:port.
func SecuredRedis(t testing.TB, a Authority) string {
	t.Helper()
	p := port(t)
	conf := filepath.Join(t.TempDir(), "redis.conf")
	writeFile(t, conf, "port 0", "tls-port "+p, "bind 127.0.0.1", "dir "+filepath.Dir(conf), `save ""`, "maxmemory-policy noeviction",
		"tls-cert-file "+a.Cert, "tls-key-file "+a.Key, "tls-ca-cert-file "+a.CA, "tls-auth-clients yes",
		"user default off", "user "+SecuredUser+" on >"+SecuredPassword+" ~seckill:* &* +@all")
	cmd := exec.Command("redis-server", conf)
	addr := net.JoinHostPort("127.0.0.1", p)
	run(t, "redis", cmd, syscall.SIGKILL, func() error {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return err
		}
		c := redis.NewClient(&redis.Options{Addr: addr, Username: SecuredUser, Password: SecuredPassword, MaxRetries: -1, DialerRetries: 1,
			TLSConfig: &tls.Config{RootCAs: pool(t, a), Certificates: []tls.Certificate{pair}, ServerName: "127.0.0.1"}})
		defer c.Close()
		return c.Ping(t.Context()).Err()
	})
	return addr
}

func pool(t testing.TB, a Authority) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(a.CA)
	if err != nil {
		t.Fatal(err)
	}
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(text)
	return p
}

// SecuredPostgres starts a PostgreSQL that takes TLS connections only
// (hostssl), and SecuredPassword from its superuser SecuredUser. It returns
// host:port; the database is postgres.
func SecuredPostgres(t testing.TB, a Authority) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hotsku-secured-") // the database's user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const bin = "/usr/lib/postgresql/15/bin/"
	password, key, data, p := filepath.Join(dir, "password"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "data"), port(t)
	writeFile(t, password, SecuredPassword)
	copied, err := os.ReadFile(a.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, copied, 0o600); err != nil {
		t.Fatal(err)
	}
	cert := filepath.Join(dir, "cert.pem")
	if copied, err = os.ReadFile(a.Cert); err != nil {
		t.Fatal(err)
	}
	writeFile(t, cert, string(copied))
	writeFile(t, filepath.Join(dir, "hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256")
	var who *syscall.SysProcAttr
	if os.Geteuid() == 0 { // it refuses root
		who = as(t, "postgres", dir, password, key)
	}
	initdb := exec.Command(bin+"initdb", "-D", data, "-U", SecuredUser, "--pwfile="+password, "--auth=scram-sha-256", "--no-sync", "--no-instructions", "--locale=C", "--encoding=UTF8")
	initdb.SysProcAttr, initdb.Dir = who, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	cmd := exec.Command(bin+"postgres", "-D", data, "-p", p, "-h", "127.0.0.1", "-k", "", "-c", "ssl=on", "-c", "ssl_cert_file="+cert, "-c", "ssl_key_file="+key,
		"-c", "hba_file="+filepath.Join(dir, "hba.conf"), "-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap", "-c", "track_commit_timestamp=on")
	cmd.SysProcAttr, cmd.Dir = who, dir
	addr := net.JoinHostPort("127.0.0.1", p)
	run(t, "postgres", cmd, syscall.SIGQUIT, func() error {
		c, err := pgx.Connect(t.Context(), SecuredURL(addr, "verify-full", a.CA, SecuredPassword))
		if err != nil {
			return err
		}
		return c.Close(t.Context())
	})
	return addr
}

// SecuredURL is a connection string for a SecuredPostgres; without a password
// it holds none.
func SecuredURL(addr, sslmode, ca, password string) string {
	u := url.URL{Scheme: "postgres", User: url.User(SecuredUser), Host: addr, Path: "/postgres",
		RawQuery: url.Values{"sslmode": {sslmode}, "sslrootcert": {ca}}.Encode()}
	if password != "" {
		u.User = url.UserPassword(SecuredUser, password)
	}
	return u.String()
}

// as gives paths to a user, as whom a command is to run.
func as(t testing.TB, name string, paths ...string) *syscall.SysProcAttr {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("%v: run make setup", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	for _, p := range paths {
		if err := os.Chown(p, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// SecuredRocketMQ starts a name server that speaks TLS, too, and a broker that
// speaks nothing else and takes requests only if they are signed with
// SecuredUser and SecuredPassword. It returns their addresses.
func SecuredRocketMQ(t testing.TB, a Authority) (nameServer, broker string) {
	t.Helper()
	dir := t.TempDir()
	names, listen := port(t), brokerPort(t)
	properties := filepath.Join(dir, "tls.properties")
	writeFile(t, properties, "tls.test.mode.enable=false", "tls.server.need.client.auth=none", "tls.server.keyPath="+a.Key, "tls.server.certPath="+a.Cert, "tls.client.authServer=false")
	writeFile(t, filepath.Join(dir, "names.conf"), "listenPort="+names, "bindAddress=127.0.0.1")
	writeFile(t, filepath.Join(dir, "broker.conf"), "brokerClusterName=hotsku", "brokerName=secured", "brokerId=0", "namesrvAddr=127.0.0.1:"+names,
		"brokerIP1=127.0.0.1", "brokerIP2=127.0.0.1", "bindAddress=127.0.0.1", "listenPort="+listen, "haListenPort="+port(t), "storePathRootDir="+filepath.Join(dir, "store"),
		"mappedFileSizeCommitLog=16777216", "autoCreateTopicEnable=false", "autoCreateSubscriptionGroup=true", "transactionMetricFlushInterval=1000", "diskMaxUsedSpaceRatio=95",
		"authConfigPath="+filepath.Join(dir, "auth"), "authenticationEnabled=true",
		"authenticationProvider=org.apache.rocketmq.auth.authentication.provider.DefaultAuthenticationProvider",
		"authenticationMetadataProvider=org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider",
		`initAuthenticationUser={"username":"`+SecuredUser+`","password":"`+SecuredPassword+`"}`,
		`innerClientAuthenticationCredentials={"accessKey":"`+SecuredUser+`","secretKey":"`+SecuredPassword+`"}`)
	nameServer, broker = net.JoinHostPort("127.0.0.1", names), net.JoinHostPort("127.0.0.1", listen)
	run(t, "namesrv", java(t, dir, "permissive", properties, "org.apache.rocketmq.namesrv.NamesrvStartup", "names.conf"), syscall.SIGKILL, func() error { return handshake(nameServer) })
	run(t, "broker", java(t, dir, "enforcing", properties, "org.apache.rocketmq.broker.BrokerStartup", "broker.conf"), syscall.SIGKILL, func() error { return handshake(broker) })
	return nameServer, broker
}

// brokerPort is a port whose neighbour two below is free, too: a broker
// listens there as well.
func brokerPort(t testing.TB) string {
	t.Helper()
	for range 50 {
		p := port(t)
		n, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		if ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n-2))); err == nil {
			ln.Close()
			return p
		}
	}
	t.Fatal("no port for a broker")
	return ""
}

func java(t testing.TB, dir, mode, properties, main, conf string) *exec.Cmd {
	t.Helper()
	cache := os.Getenv("HOTSKU_CACHE")
	if cache == "" {
		cache = "/var/cache/hotsku"
		if os.Geteuid() != 0 {
			base, err := os.UserCacheDir()
			if err != nil {
				t.Fatal(err)
			}
			cache = filepath.Join(base, "hotsku")
		}
	}
	libs, err := filepath.Glob(filepath.Join(cache, "rocketmq-*", "lib"))
	if err != nil || len(libs) == 0 {
		t.Fatalf("no RocketMQ below %s: run make setup", cache)
	}
	return exec.Command("java", "-Xms128m", "-Xmx512m", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+PerfDisableSharedMem",
		"-Dtls.server.mode="+mode, "-Dtls.config.file="+properties, "-Duser.home="+dir, "-Drocketmq.home.dir="+dir,
		"-cp", filepath.Join(libs[len(libs)-1], "*"), main, "-c", filepath.Join(dir, conf))
}

// handshake is TLS with a server that has a certificate.
func handshake(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if cn := c.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName; !strings.Contains(cn, "test server") {
		return errors.New("the certificate is of " + cn)
	}
	return nil
}
