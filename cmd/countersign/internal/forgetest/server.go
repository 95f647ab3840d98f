package forgetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// The versions that .ci/forge can build.
const (
	Current = "v1.25.5"
	Older   = "v1.24.6"
	Forgejo = "forgejo-v10.0.0-dev"
)

// startTimeout is how long a start may take before the test fails; it takes one or two seconds.
const startTimeout = 2 * time.Minute

// A Server is a running Gitea with one administrator.
type Server struct {
	// URL is its address, without a slash at the end: a proxy's in front of it, which stays while the
	// server is stopped (502 then), and where faults are made.
	URL     string
	Version string // as "v1.25.5", or Forgejo
	Dir     string // what it keeps; repositories are in Dir/data/gitea-repositories
	Admin   User

	t testing.TB
	*running
}

// running is what all of one server share.
type running struct {
	owner              testing.TB // whose end is the server's
	program            string     // the folder that was built
	process            *process
	proxy              *httptest.Server
	teststand.Recorder // of what comes to URL
}

// Start starts a real Gitea or Forgejo that ends with the test: on loopback alone, with its files in a directory of its own,
// and as a user of its own where the tests are root, which Gitea refuses to be.
//
// COUNTERSIGN_GITEA names the directory that .ci/forge built them into; a test fails if that directory lacks them, and is
// skipped if the variable is not set. COUNTERSIGN_GITEA_VERSION asks for another version than [Current].
func Start(t testing.TB) *Server {
	t.Helper()
	version := cmp.Or(os.Getenv("COUNTERSIGN_GITEA_VERSION"), Current)
	folder := "gitea-" + version
	if version == Forgejo {
		folder = version
	}
	s := &Server{t: t, Version: version, Dir: directory(t), running: &running{owner: t, program: built(t, folder)}}
	s.proxy = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.proxy.URL
	t.Cleanup(func() {
		s.proxy.CloseClientConnections() // one that hangs would keep Close
		s.proxy.Close()
	})
	s.configure()
	s.Run("migrate")
	s.Admin = User{Name: "root", Password: rand.Text()}
	s.Run("admin", "user", "create", "--admin", "--username", s.Admin.Name, "--password", s.Admin.Password, "--email", "root@example.com", "--must-change-password=false")
	s.Restart()
	s.Admin.Token, s.Admin.ID = s.token(s.Admin), 1
	return s
}

// Name is what it calls itself, as "Gitea 1.25.5".
func (s *Server) Name() string {
	if number, is := strings.CutPrefix(s.Version, "forgejo-v"); is {
		return "Forgejo " + number
	}
	return "Gitea " + s.Version[1:]
}

// ListsRuns reports whether the server tells of workflow runs, and starts one after another.
func (s *Server) ListsRuns() bool { return s.Version == Current }

// For is the same server for a subtest, which what is made and asked by it fails.
func (s *Server) For(t testing.TB) *Server {
	same := *s
	same.t = t
	return &same
}

// built is the folder of something that .ci/forge built.
func built(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("COUNTERSIGN_GITEA")
	if dir == "" {
		t.Skip("\n\n*** NOT TESTED ON A REAL FORGE: COUNTERSIGN_GITEA is not set (see .ci/forge) ***\n")
	}
	dir, err := filepath.Abs(filepath.Join(dir, name))
	check(t, err)
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("gitea: %v; .ci/forge builds it", err)
	}
	return dir
}

// directory makes a directory that belongs to the user that servers run as. Those of t.TempDir are inside
// one that only the tests' user may enter.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "forge-")
	check(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("gitea: %v", err)
		}
	})
	check(t, os.Chmod(dir, 0o755)) // one may look into it
	check(t, own(dir))
	return dir
}

// configure writes app.ini. Nothing in it reaches beyond this machine.
func (s *Server) configure() {
	s.t.Helper()
	runs, err := runUser()
	check(s.t, err)
	ini := fmt.Sprintf(`
RUN_USER = %s
RUN_MODE = prod
WORK_PATH = %[2]s

[server]
PROTOCOL = http+unix
HTTP_ADDR = %[3]s
ROOT_URL = %[4]s/
STATIC_ROOT_PATH = %[5]s
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = true
LFS_JWT_SECRET = %[6]s

[database]
DB_TYPE = sqlite3
SQLITE_JOURNAL_MODE = WAL
SQLITE_TIMEOUT = 20000

[security]
INSTALL_LOCK = true
SECRET_KEY = %[7]s
INTERNAL_TOKEN = %[8]s
PASSWORD_HASH_ALGO = pbkdf2$1$32
SUCCESSFUL_TOKENS_CACHE_SIZE = 1000

[oauth2]
ENABLED = false
JWT_SECRET = %[6]s

[service]
DISABLE_REGISTRATION = true

[repository]
DEFAULT_BRANCH = main
ROOT = %[2]s/data/gitea-repositories

[indexer]
ISSUE_INDEXER_TYPE = db

[session]
PROVIDER = memory

[picture]
DISABLE_GRAVATAR = true

[cron.update_checker]
ENABLED = false

[migrations]
ALLOW_LOCALNETWORKS = true

[webhook]
ALLOWED_HOST_LIST = loopback

[actions]
ENABLED = true
DEFAULT_ACTIONS_URL = self

[log]
MODE = console
LEVEL = warn
`, runs, s.Dir, s.socket(), s.URL, s.program, secret32, rand.Text(), rand.Text())
	check(s.t, os.WriteFile(s.ini(), []byte(ini), 0o600))
	check(s.t, own(s.ini()))
}

// secret32 is 32 bytes, as Gitea wants them.
const secret32 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

func (s *Server) ini() string    { return filepath.Join(s.Dir, "app.ini") }
func (s *Server) socket() string { return filepath.Join(s.Dir, "http") }

// Run runs one of Gitea's own commands, as "admin", and returns what it prints.
func (s *Server) Run(args ...string) string {
	s.t.Helper()
	cmd := s.command(args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("gitea %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s *Server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.program, "gitea"), append([]string{"--config", s.ini()}, args...)...)
	cmd.Dir = s.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "TMPDIR=" + s.Dir, "GITEA_WORK_DIR=" + s.Dir, "GIT_CONFIG_NOSYSTEM=1", "GOGC=800"}
	asOwn(cmd)
	return cmd
}

// Restart starts the server again, which may be running, stopped or killed.
func (s *Server) Restart() {
	s.t.Helper()
	if s.process != nil {
		s.Stop()
	}
	s.process = start(s.owner, s.command("web"))
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		answer, err := s.direct().Get("http://gitea/api/healthz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if s.process.ended() || time.Now().After(deadline) {
			s.t.Fatalf("gitea: it does not start: %v\n%s", err, s.process.log())
		}
	}
}

// Stop ends the server as an administrator does; Restart starts it again.
func (s *Server) Stop() { s.process.stop() }

// Kill ends the server at once, in the middle of whatever it does.
func (s *Server) Kill() { s.process.kill() }

func (s *Server) direct() *http.Client { return &http.Client{Transport: s.transport()} }

func (s *Server) transport() *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, // else a restart is met by connections to the server before
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket())
		},
	}
}

// pastFaults is a header of requests that a test makes to arrange something: they are neither noted nor failed.
const pastFaults = "X-Past-Faults"

// serve notes a request and passes it on, or fails as a fault says.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(pastFaults) != "" {
		s.behind().ServeHTTP(w, r)
		return
	}
	s.Recorder.Serve(w, r, s.behind())
}

func (s *Server) behind() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: "gitea"})
			p.Out.Host = p.In.Host
			p.SetXForwarded()
		},
		Transport:     s.transport(),
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				http.Error(w, "gitea: "+err.Error(), http.StatusBadGateway)
			}
		},
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("gitea: %v", err)
	}
}
