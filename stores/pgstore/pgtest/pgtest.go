// Package pgtest starts a PostgreSQL server for tests: a process of its own, with its data in a
// temporary directory, that listens on a socket there and on loopback. A test fails where no
// server is installed.
package pgtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Server is a running server.
type Server struct {
	bin, data, socket string
	port              int
	uid               string // to run the server as, empty for the user of the test
}

// Start starts a server that ends with the test. Settings are added to its configuration:
// "fsync = off".
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{}
	if err := s.create(settings); err != nil {
		t.Fatal("pgtest: ", err)
	}
	t.Cleanup(func() {
		if err := s.Stop("immediate"); err != nil && !strings.Contains(err.Error(), "no server running") {
			t.Error("pgtest: ", err)
		}
		if err := os.RemoveAll(filepath.Dir(s.data)); err != nil {
			t.Error("pgtest: ", err)
		}
	})
	if err := s.Start(); err != nil {
		t.Fatal("pgtest: ", err)
	}
	return s
}

// create makes an empty database cluster.
func (s *Server) create(settings []string) (err error) {
	if s.bin, err = binaries(); err != nil {
		return err
	}
	// The path of a socket is at most about a hundred bytes long, and the directory of a
	// test may be closed to other users.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return err
	}
	s.data, s.socket = filepath.Join(dir, "data"), dir
	if os.Getuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return fmt.Errorf("a server cannot run as root: %w", err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			return err
		}
		s.uid = u.Uid
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.run("initdb", "-D", s.data, "-U", "recrawl", "-A", "trust", "--no-sync", "--locale=C.UTF-8"); err != nil {
		return err
	}
	conf := fmt.Sprintf("listen_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\nshared_buffers = 256MB\nmax_connections = 200\nmax_wal_size = 1GB\nlog_min_messages = warning\n%s\n",
		s.port, s.socket, strings.Join(settings, "\n"))
	f, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(conf)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// binaries returns the directory of the programs of the server.
func binaries() (string, error) {
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl") // Debian's place
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL is not installed: there is neither pg_ctl in the path nor /usr/lib/postgresql/*/bin")
	}
	return filepath.Dir(slices.Max(found)), nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// run runs a program of the server and waits for its end.
func (s *Server) run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args = append([]string{filepath.Join(s.bin, name)}, args...)
	if s.uid != "" {
		args = append([]string{"setpriv", "--reuid", s.uid, "--regid", "postgres", "--init-groups", "--"}, args...)
	}
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Start starts the server again after a Stop.
func (s *Server) Start() error {
	return s.run("pg_ctl", "-D", s.data, "-l", filepath.Join(s.socket, "log"), "-w", "-t", "50", "start")
}

// Stop stops the server: "fast" ends it in order, "immediate" is a crash of all its processes.
func (s *Server) Stop(mode string) error {
	return s.run("pg_ctl", "-D", s.data, "-m", mode, "-w", "-t", "50", "stop")
}

// DSN returns the connection string of a crawl, through the socket.
func (s *Server) DSN(crawl string) string {
	return fmt.Sprintf("host=%s port=%d user=recrawl dbname=postgres crawl=%s", s.socket, s.port, crawl)
}

// Address returns where the server listens on loopback.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// DSNAt returns the connection string of a crawl through another address, such as that of a
// proxy.
func DSNAt(address, crawl string) string {
	return fmt.Sprintf("postgres://recrawl@%s/postgres?sslmode=disable&crawl=%s", address, crawl)
}
