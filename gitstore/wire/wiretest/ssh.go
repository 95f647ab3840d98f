package wiretest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// A Stall is where an ssh server stops answering.
type Stall string

// The places.
const (
	StallNowhere   Stall = ""
	StallHandshake Stall = "before it says anything"
	StallCommand   Stall = "after the command was sent" // git is not run
	StallAnswer    Stall = "after git has read all that it wants"
	CutReport      Stall = "no stall: the connection is closed after git has done its work"
)

// An SSH is a server that runs git-upload-pack and git-receive-pack on any
// repository of this machine, for one key.
type SSH struct {
	Address    string // 127.0.0.1:PORT
	KeyFile    string // the private key that it lets in
	Key        []byte
	KnownHosts string // a file with its own key

	t        testing.TB
	config   *ssh.ServerConfig
	mu       sync.Mutex
	stall    Stall
	answer   []byte // in git's stead
	conns    []net.Conn
	commands []string
}

// Client is an ssh that reads nobody's ssh_config.
const Client = "ssh -F none"

// NewSSH starts a server and ends it with the test, which it skips where there
// is no ssh to connect with.
func NewSSH(t testing.TB) *SSH {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not installed")
	}
	dir := t.TempDir()
	s := &SSH{t: t, KeyFile: filepath.Join(dir, "key"), KnownHosts: filepath.Join(dir, "known_hosts")}
	client, clientPEM := NewKey(t)
	host, _ := NewKey(t)
	s.Key = clientPEM
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	s.config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = l.Addr().String()
	write(t, s.KeyFile, clientPEM)
	write(t, s.KnownHosts, []byte(knownhosts.Line([]string{s.Address}, host.PublicKey())+"\n"))
	t.Cleanup(func() {
		_ = l.Close()
		s.Cut()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// NewKey makes a key, and its form for a file.
func NewKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// URL is where a repository is served, by its absolute path.
func (s *SSH) URL(dir string) string { return "ssh://git@" + s.Address + filepath.ToSlash(dir) }

// SetStall sets where the server stops from now on.
func (s *SSH) SetStall(at Stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stall = at
}

// SetAnswer lets the server send this in git's stead; nil is git again.
func (s *SSH) SetAnswer(answer []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Commands are what the server was asked to run.
func (s *SSH) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Cut ends all connections, as a server that is restarted does.
func (s *SSH) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *SSH) serve(conn net.Conn) {
	s.mu.Lock()
	s.conns = append(s.conns, conn)
	stall := s.stall
	s.mu.Unlock()
	if stall == StallHandshake {
		return // the cleanup closes it
	}
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *SSH) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		var exec struct{ Command string }
		_ = ssh.Unmarshal(r.Payload, &exec)
		s.mu.Lock()
		s.commands = append(s.commands, exec.Command)
		stall, answer := s.stall, s.answer
		s.mu.Unlock()
		switch {
		case stall == StallCommand:
			_, _ = io.Copy(io.Discard, channel)
			continue // until the client leaves
		case answer != nil:
			_, _ = channel.Write(answer)
			_ = channel.CloseWrite()
			drain(channel)
			return
		}
		status := run(exec.Command, channel, stall)
		if stall == StallAnswer {
			continue
		}
		if stall == CutReport {
			s.Cut()
			return
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// drain reads what a client still sends, which may wait for the channel's end.
func drain(channel ssh.Channel) {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, channel)
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(time.Second):
	}
}

func run(command string, channel ssh.Channel, stall Stall) uint32 {
	service, path, ok := strings.Cut(command, " ")
	if !ok || service != "git-upload-pack" && service != "git-receive-pack" {
		return 127
	}
	path = strings.NewReplacer(`'\''`, "'", `'\!'`, "!").Replace(strings.TrimSuffix(strings.TrimPrefix(path, "'"), "'"))
	cmd := exec.Command("git", strings.TrimPrefix(service, "git-"), path)
	isolate(cmd, configEnvironment([][2]string{{"uploadpack.allowFilter", "true"}, {"uploadpack.allowAnySHA1InWant", "true"}})...)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	if stall != StallNowhere {
		cmd.Stdout = &firstLines{w: channel}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 126
	}
	go func() {
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	}()
	if err := cmd.Run(); err != nil {
		return 1
	}
	return 0
}

// A firstLines lets the list of refs pass, to its flush, and nothing after.
type firstLines struct {
	w    io.Writer
	past bool
}

func (f *firstLines) Write(p []byte) (int, error) {
	if f.past {
		return len(p), nil
	}
	f.past = bytes.HasSuffix(p, []byte("0000"))
	return f.w.Write(p)
}
