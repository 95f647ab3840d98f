package wire_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const secret = "s3cret-t0ken"

func withUser(url, userinfo string) string { return strings.Replace(url, "://", "://"+userinfo+"@", 1) }

// TestCredentials: who has some is asked once, where the server wants some and none were
// given, and told what became of them.
func TestCredentials(t *testing.T) {
	want := wire.Basic("ada", secret)
	_, side := httpSide(t, teststand.Options{Authorization: want})
	next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
	for name, c := range map[string]struct {
		given, has string
		asked      int
		took, ok   bool
	}{
		"good":             {"", want, 1, true, true},
		"wrong":            {"", wire.Basic("ada", "old"), 1, false, false},
		"none":             {"", "", 1, false, false},
		"one with a break": {"", want + "\r\nX: y", 1, false, false},
		"given":            {want, "", 0, false, true},
		"given and wrong":  {wire.Basic("ada", "old"), want, 0, false, false},
	} {
		asked, told, took := 0, 0, false
		s := open(t, side.url, wire.Options{Authorization: c.given, Credentials: func(_ context.Context, address *url.URL) (string, func(bool)) {
			if asked++; address.String() != side.url {
				t.Errorf("%s: asked for %s, not %s", name, address, side.url)
			}
			return c.has, func(good bool) { told++; took = good }
		}})
		_, err := s.Tip(t.Context(), ledger)
		if (err == nil) != c.ok || asked != c.asked || took != c.took {
			t.Errorf("%s: %v; asked %d times, took %v", name, err, asked, took)
		}
		if err == nil {
			_ = s.Push(t.Context(), ledger, packfile.None, next, pack)
		}
		if _, err := s.Tip(t.Context(), ledger); (err == nil) != c.ok || asked > 1 || told > 1 {
			t.Errorf("%s, again: %v; asked %d times, told %d times", name, err, asked, told)
		}
	}
	if side.repo.Ref(ledger) != next {
		t.Error("nothing was pushed")
	}
}

func TestAuthorization(t *testing.T) {
	want := wire.Basic("x-access-token", secret)
	srv, side := httpSide(t, teststand.Options{Authorization: want})
	extra, err := wire.ExtraHeader("AUTHORIZATION: " + want)
	fatal(t, err)
	next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
	for name, s := range map[string]*wire.Server{
		"header":      open(t, side.url, wire.Options{Authorization: want}),
		"extraheader": open(t, side.url, wire.Options{Authorization: extra}),
		"URL":         open(t, withUser(side.url, "x-access-token:"+secret), wire.Options{}),
		"both":        open(t, withUser(side.url, "x:y"), wire.Options{Authorization: want}),
	} {
		if _, err := s.Tip(t.Context(), ledger); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = s.Push(t.Context(), ledger, packfile.None, next, pack)
	}
	if side.repo.Ref(ledger) != next {
		t.Error("nothing was pushed")
	}
	for _, r := range srv.Requests() {
		if r.Authorization != want {
			t.Errorf("%s %s: %q", r.Method, r.URI, r.Authorization)
		}
	}
	for name, s := range map[string]*wire.Server{
		"none":  side.open(t),
		"wrong": open(t, side.url, wire.Options{Authorization: "Bearer " + secret}),
		"user":  open(t, withUser(side.url, secret), wire.Options{}),
	} {
		_, tip := s.Tip(t.Context(), ledger)
		push := s.Push(t.Context(), ledger, packfile.None, next, pack)
		for _, err := range []error{tip, push} {
			var auth *wire.AuthError
			if !errors.As(err, &auth) || auth.Status != 401 || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, s), secret) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestExtraHeader(t *testing.T) {
	for _, line := range []string{"", "Authorization", "Authorization:", "Cookie: a=b", "Authorization: a\r\nCookie: b"} {
		if got, err := wire.ExtraHeader(line); err == nil {
			t.Errorf("%q gives %q", line, got)
		}
	}
	for _, o := range []wire.Options{{Authorization: "a\r\nb"}, {UserAgent: "a b"}, {UserAgent: "a\nb"}} {
		if _, err := wire.Open("https://example.com/r", o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// The first request may be sent elsewhere on the same host, and the others follow.
func TestRedirect(t *testing.T) {
	want := wire.Basic("u", secret)
	srv, side := httpSide(t, teststand.Options{Authorization: want})
	tip := side.repo.Commit(ledger, map[string]string{"a": "1"})
	moved := func(location string) {
		srv.SetFault(func(_ int, r *http.Request) teststand.Fault {
			if strings.HasPrefix(r.URL.Path, "/old/") {
				return teststand.Fault{Kind: teststand.StatusBefore, Status: 301, Location: location}
			}
			return teststand.Fault{}
		})
	}
	moved("/r.git/info/refs?service=git-upload-pack")
	s := open(t, srv.URL("old"), wire.Options{Authorization: want})
	mustTip(t, s, ledger, tip)
	if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{tip}}); err != nil {
		t.Error(err)
	}
	next, pack := side.repo.Pack(tip, map[string]string{"a": "2"})
	mustPush(t, s, tip, next, pack)

	s = open(t, srv.URL("old"), wire.Options{Authorization: want, Exact: true, Role: "the old one"})
	if _, err := s.Tip(t.Context(), ledger); !errors.Is(err, wire.ErrElsewhere) || !strings.HasPrefix(err.Error(), "the old one, http://") {
		t.Errorf("where no redirect is followed: %v", err)
	}
	s = open(t, srv.URL("old"), wire.Options{Authorization: want})
	if err := s.Push(t.Context(), ledger, next, next, pack); err == nil {
		t.Error("a push was redirected")
	}
	for _, to := range []string{
		"", "/login", "/r.git/info/refs", "/r.git/info/refs?service=git-receive-pack", "ftp://127.0.0.1/info/refs?service=git-upload-pack",
		"http://u:" + secret + "@" + srv.Listener.Addr().String() + "/r.git/info/refs?service=git-upload-pack",
		"/old/info/refs?service=git-upload-pack", // to itself
	} {
		moved(to)
		s := open(t, srv.URL("old"), wire.Options{Authorization: want})
		if _, err := s.Tip(t.Context(), ledger); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("redirected to %q: %v", to, err)
		}
	}
}

// No request, and so no credential, goes to another host or to http.
func TestNoOtherHost(t *testing.T) {
	other := teststand.NewServer(t, teststand.Options{})
	other.Bare("r.git")
	statuses := []int{301, 302, 303, 307, 308}
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		statuses = statuses[:1]
	}
	for _, o := range []teststand.Options{{}, {TLS: true}} {
		srv, side := httpSide(t, o)
		side.o.Authorization = wire.Basic("u", secret)
		host := strings.Replace(other.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
		for _, to := range []string{other.URL("r.git"), "http://" + host + "/r.git", "//" + other.Listener.Addr().String() + "/r.git"} {
			for _, status := range statuses {
				srv.SetFault(func(_ int, r *http.Request) teststand.Fault {
					location := to + strings.TrimPrefix(r.URL.RequestURI(), "/r.git")
					return teststand.Fault{Kind: teststand.StatusBefore, Status: status, Location: location}
				})
				s := side.open(t)
				next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
				_, tip := s.Tip(t.Context(), ledger)
				_, fetch := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{next}})
				push := s.Push(t.Context(), ledger, packfile.None, next, pack)
				for _, err := range []error{tip, fetch, push} {
					if err == nil || strings.Contains(err.Error(), secret) {
						t.Errorf("%d to %s: %v", status, to, err)
					}
				}
			}
		}
	}
	if all := other.Requests(); len(all) != 0 {
		t.Errorf("the other host got %+v", all)
	}
}

// Whatever goes wrong, no error and no print has the secret.
func TestNoSecretInErrors(t *testing.T) {
	srv, side := httpSide(t, teststand.Options{})
	next, pack := side.repo.Pack(packfile.None, map[string]string{"a": "1"})
	for _, userinfo := range []string{secret, "u:" + secret, secret + ":x"} {
		url := withUser(side.url, userinfo)
		var errs []error
		for _, f := range teststand.All() {
			s := open(t, url, wire.Options{})
			srv.SetFault(fault(f))
			_, tip := s.Tip(t.Context(), ledger)
			_, fetch := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{next}})
			errs = append(errs, tip, fetch, s.Push(t.Context(), ledger, packfile.None, next, pack))
		}
		s := open(t, url, wire.Options{})
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Tip(cancelled, ledger)
		_, err2 := s.Tip(t.Context(), "bad")
		_, err3 := wire.Open(withUser("ext://h/p", userinfo), wire.Options{})
		_, err4 := wire.Open(withUser("https://h:99999/p", userinfo), wire.Options{})
		_, err5 := wire.Open(withUser("https://h/%zz", userinfo), wire.Options{})
		_, err6 := open(t, withUser("http://127.0.0.1:1/r", userinfo), wire.Options{}).Tip(t.Context(), ledger)
		for _, err := range append(errs, err, err2, err3, err4, err5, err6) {
			for ; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
					t.Errorf("%v", err)
				}
			}
		}
		if text := fmt.Sprintf("%v %+v %s", s, s, s.Remote()) + fmt.Sprintf("%#v", s.Remote()); strings.Contains(text, secret) {
			t.Error(text)
		}
	}
}

// An sshServer is what OpenSSH's client connects to: it runs git's services on this machine, for one key.
type sshServer struct{ address, keyFile, knownHosts string }

func newSSHServer(t *testing.T) (s sshServer, key []byte) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not installed")
	}
	client, key := newKey(t)
	host, _ := newKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(t, err)
	t.Cleanup(func() { _ = l.Close() })
	dir := t.TempDir()
	s = sshServer{l.Addr().String(), filepath.Join(dir, "key"), filepath.Join(dir, "known_hosts")}
	write(t, s.keyFile, string(key))
	write(t, s.knownHosts, knownhosts.Line([]string{s.address}, host.PublicKey())+"\n")
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config)
		}
	}()
	return s, key
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			_ = r.Reply(r.Type == "exec", nil)
			var asked struct{ Command string }
			if r.Type != "exec" || ssh.Unmarshal(r.Payload, &asked) != nil {
				continue
			}
			cmd := exec.Command("sh", "-c", asked.Command)
			cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
			in, _ := cmd.StdinPipe()
			go func() { _, _ = io.Copy(in, channel); _ = in.Close() }()
			status := byte(0)
			if cmd.Run() != nil {
				status = 1
			}
			_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, status})
			_ = channel.Close()
		}
	}
}

// newKey makes a key, and its form for a file.
func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	fatal(t, err)
	block, err1 := ssh.MarshalPrivateKey(key, "")
	signer, err2 := ssh.NewSignerFromKey(key)
	fatal(t, errors.Join(err1, err2))
	return signer, pem.EncodeToMemory(block)
}

// TestSSHKeys: OpenSSH's client takes the key and the hosts that it is given, and what it says of others is understood.
func TestSSHKeys(t *testing.T) {
	sshd, rightKey := newSSHServer(t)
	repo := teststand.Bare(t, filepath.Join(t.TempDir(), "it's r!.git"))
	url := "ssh://git@" + sshd.address + strings.ReplaceAll(repo.Dir, " ", "%20")
	dir := t.TempDir()
	_, key := newKey(t)
	otherKey, noKey := filepath.Join(dir, "a key of 100%"), filepath.Join(dir, "no key")
	write(t, otherKey, string(key))
	write(t, noKey, "no key")
	otherHost, _ := newSSHServer(t)
	empty := filepath.Join(dir, "known_hosts")
	write(t, empty, "")
	known := []string{sshd.knownHosts}
	wrong := strings.Replace(readFile(t, otherHost.knownHosts), otherHost.address[strings.Index(otherHost.address, ":")+1:], sshd.address[strings.Index(sshd.address, ":")+1:], 1)
	changed := filepath.Join(dir, "changed hosts")
	write(t, changed, wrong)
	right, wrongAgent := startAgent(t, rightKey), startAgent(t, key)
	var auth *wire.AuthError
	var host interface{ Hint() string } // of the key of the host alone, by its words
	rows := []struct {
		name  string
		ssh   wire.SSH
		agent string
		as    any
		words string
	}{
		{"key file", wire.SSH{KeyFile: sshd.keyFile, KnownHosts: known}, "", nil, ""},
		{"key file, two lists of hosts", wire.SSH{KeyFile: sshd.keyFile, KnownHosts: []string{empty, sshd.knownHosts}}, "", nil, ""},
		{"agent", wire.SSH{KnownHosts: known}, right, nil, ""},
		{"another key, and the agent has the right one", wire.SSH{KeyFile: otherKey, KnownHosts: known}, right, &auth, "Permission denied"},
		{"another key", wire.SSH{KeyFile: otherKey, KnownHosts: known}, "", &auth, "Permission denied"},
		{"another agent", wire.SSH{KnownHosts: known}, wrongAgent, &auth, "Permission denied"},
		{"no key in the file", wire.SSH{KeyFile: noKey, KnownHosts: known}, "", &auth, ""},
		{"no key file", wire.SSH{KeyFile: sshd.keyFile + "x", KnownHosts: known}, right, &auth, "no such file"},
		{"unknown host", wire.SSH{KeyFile: sshd.keyFile, KnownHosts: []string{empty}}, "", &host, "key is not trusted: "},
		{"changed host", wire.SSH{KeyFile: sshd.keyFile, KnownHosts: []string{changed}}, "", &host, "key is not trusted: "},
		{"no known hosts", wire.SSH{KeyFile: sshd.keyFile, KnownHosts: []string{empty + "x"}}, "", &host, "key is not trusted: "},
	}
	for _, row := range rows {
		t.Setenv("SSH_AUTH_SOCK", row.agent)
		row.ssh.Command, row.ssh.Batch = "ssh -F none", true
		_, err := open(t, url, wire.Options{SSH: row.ssh}).Tip(t.Context(), ledger)
		if row.as == nil && err != nil || row.as != nil && (!errors.As(err, row.as) || !strings.Contains(err.Error(), row.words)) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	fatal(t, err)
	return string(b)
}

// startAgent serves a key as ssh-agent does.
func startAgent(t *testing.T, pem []byte) (socket string) {
	t.Helper()
	key, err := ssh.ParseRawPrivateKey(pem)
	fatal(t, err)
	ring := agent.NewKeyring()
	fatal(t, ring.Add(agent.AddedKey{PrivateKey: key}))
	dir, err := os.MkdirTemp("", "agent") // a socket's path is short
	fatal(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	fatal(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, conn) }()
		}
	}()
	return filepath.Join(dir, "s")
}

// The server runs git's services, on the path as it is named.
func TestSSHCommands(t *testing.T) {
	sshd, side := sshSide(t)
	tip := side.repo.Commit(ledger, map[string]string{"a": "1"})
	s := side.open(t)
	mustTip(t, s, ledger, tip)
	if _, err := s.Fetch(t.Context(), wire.FetchRequest{Wants: []packfile.ID{tip}}); err != nil {
		t.Fatal(err)
	}
	next, pack := side.repo.Pack(tip, map[string]string{"a": "2"})
	mustPush(t, s, tip, next, pack)
	path := " '" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(side.repo.Dir) + "'"
	want := "git-upload-pack" + path + "\ngit-upload-pack" + path + "\ngit-receive-pack" + path + "\n"
	if got := sshd.Commands(); got != want {
		t.Errorf("commands %q, want %q", got, want)
	}
}
