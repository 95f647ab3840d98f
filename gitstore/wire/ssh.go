package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"
)

// An sshClient is a transport of our own, because go-git's waits for a server's
// handshake, and reads its list of refs, without end. The connection is kept
// for the next call, until one fails.
type sshClient struct {
	remote Remote
	ssh    SSH
	notes  *notes

	conn  *ssh.Client
	inner net.Conn // conn's
}

func (c *sshClient) begin(n *notes) { c.notes = n }

func (c *sshClient) Close() error {
	if c.conn == nil {
		return nil
	}
	conn := c.conn
	c.conn = nil
	return conn.Close()
}

func (c *sshClient) NewUploadPackSession(*transport.Endpoint, transport.AuthMethod) (transport.UploadPackSession, error) {
	return &sshSession{client: c, service: transport.UploadPackServiceName}, nil
}

func (c *sshClient) NewReceivePackSession(*transport.Endpoint, transport.AuthMethod) (transport.ReceivePackSession, error) {
	return &sshSession{client: c, service: transport.ReceivePackServiceName}, nil
}

// channel opens a session, on the connection that there is if it still works.
func (c *sshClient) channel(ctx context.Context) (*ssh.Session, error) {
	if c.conn != nil {
		stop := context.AfterFunc(ctx, func() { _ = c.inner.Close() })
		sess, err := c.conn.NewSession()
		if stop(); err == nil {
			return sess, nil
		}
		_ = c.Close()
	}
	if err := c.dial(ctx); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.inner.Close() })
	defer stop()
	sess, err := c.conn.NewSession()
	if err != nil {
		return nil, &NetworkError{err}
	}
	return sess, nil
}

func (c *sshClient) dial(ctx context.Context) error {
	host, port := c.address()
	address := net.JoinHostPort(host, strconv.Itoa(port))
	config, done, err := c.config(address)
	if err != nil {
		return err
	}
	defer done()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return &NetworkError{err}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var trusted bool
	var distrusted error
	check := config.HostKeyCallback
	config.HostKeyCallback = func(name string, from net.Addr, key ssh.PublicKey) error {
		distrusted = check(name, from, key)
		trusted = distrusted == nil
		return distrusted
	}
	sc, channels, requests, err := ssh.NewClientConn(conn, address, config)
	switch {
	case err == nil:
		c.conn, c.inner = ssh.NewClient(sc, channels, requests), conn
		return nil
	case distrusted != nil:
		err = &HostKeyError{distrusted}
	case isNetwork(err) || !trusted:
		err = &NetworkError{err}
	default: // nothing but authentication comes after the key
		err = &AuthError{Err: err}
	}
	_ = conn.Close()
	return err
}

// address heeds ~/.ssh/config as far as go-git does.
func (c *sshClient) address() (host string, port int) {
	host, port = c.remote.host, c.remote.dialPort()
	if c.ssh.Config == nil {
		return host, port
	}
	if name := c.ssh.Config(c.remote.host, "Hostname"); name != "" {
		host = strings.ReplaceAll(name, "%h", c.remote.host)
	}
	if p, err := strconv.Atoi(c.ssh.Config(c.remote.host, "Port")); err == nil && c.remote.port == 0 {
		port = p
	}
	return host, port
}

// An sshSession is one run of a service on the server.
type sshSession struct {
	client  *sshClient
	service string

	sess   *ssh.Session
	in     io.WriteCloser
	out    *bufio.Reader
	adv    *packp.AdvRefs
	stop   func() bool
	failed bool
}

func (s *sshSession) fail(err error) error {
	s.failed = true
	if isNetwork(err) {
		err = &NetworkError{err}
	}
	return s.client.notes.failed(err)
}

func (s *sshSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	if s.adv != nil {
		return s.adv, nil
	}
	if err := s.start(ctx); err != nil {
		return nil, s.fail(err)
	}
	limited := &io.LimitedReader{R: s.out, N: maxAdvertisement}
	adv, err := readAdvertisement(limited, "")
	switch {
	case err != nil && limited.N <= 0:
		return nil, s.fail(ErrTooLarge)
	case err != nil:
		s.hearOut(err)
		return nil, s.fail(err)
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	s.adv = adv
	return adv, nil
}

// lastWords is how long a server that has ended its answer may still say why.
const lastWords = 2 * time.Second

// hearOut waits for what a server says beside an answer that ended too early: it
// comes on a stream of its own.
func (s *sshSession) hearOut(err error) {
	if !errors.Is(err, errCut) && !isNetwork(err) {
		return
	}
	over := make(chan struct{})
	go func() {
		_ = s.sess.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(lastWords):
	}
}

func (s *sshSession) start(ctx context.Context) error {
	sess, err := s.client.channel(ctx)
	if err != nil {
		return err
	}
	inner := s.client.inner
	s.sess, s.stop = sess, context.AfterFunc(ctx, func() { _ = inner.Close() })
	if s.in, err = sess.StdinPipe(); err != nil {
		return err
	}
	out, err := sess.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReaderSize(out, 32<<10)
	sess.Stderr = s.client.notes
	if err := sess.Start(s.service + " " + quote(s.client.remote.path)); err != nil {
		return fmt.Errorf("running %s: %w", s.service, err)
	}
	return nil
}

// quote is for the server's shell, as git does it.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

func (s *sshSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if _, err := s.AdvertisedReferencesContext(ctx); err != nil {
		return nil, err
	}
	if err := s.ask(req); err != nil {
		return nil, s.fail(fmt.Errorf("asking: %w", err))
	}
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(&sshBody{s})); err != nil {
		return nil, s.fail(err)
	}
	return resp, nil
}

func (s *sshSession) ask(req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(s.in); err != nil {
		return err
	}
	if err := req.UploadHaves.Encode(s.in, true); err != nil {
		return err
	}
	if err := pktline.NewEncoder(s.in).EncodeString("done\n"); err != nil {
		return err
	}
	return s.in.Close()
}

// An sshBody remembers how reading failed, which packp turns to text.
type sshBody struct{ s *sshSession }

func (b *sshBody) Read(p []byte) (int, error) {
	n, err := b.s.out.Read(p)
	if err != nil && err != io.EOF {
		return n, b.s.fail(err)
	}
	if long := b.s.client.notes.count(n); long != nil {
		return 0, b.s.fail(long)
	}
	return n, err
}

func (s *sshSession) ReceivePack(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	if _, err := s.AdvertisedReferencesContext(ctx); err != nil {
		return nil, err
	}
	if err := req.Encode(s.in); err != nil {
		return nil, s.fail(err)
	}
	if err := s.in.Close(); err != nil {
		return nil, s.fail(err)
	}
	limited := &io.LimitedReader{R: s.out, N: maxReport}
	report, err := readReport(limited, req.Capabilities.Supports(capability.Sideband64k), s.client.notes)
	switch {
	case err != nil && limited.N <= 0:
		return nil, s.fail(ErrTooLarge)
	case err != nil:
		return nil, s.fail(err)
	}
	return report, report.Error()
}

// Close ends the run, and the connection too if something went wrong on it.
func (s *sshSession) Close() error {
	if s.sess != nil {
		if s.adv != nil && s.in != nil {
			_, _ = s.in.Write(pktline.FlushPkt) // a server that was asked nothing ends in peace; another has its input closed
		}
		_ = s.sess.Close()
		s.stop()
	}
	if s.failed {
		return s.client.Close()
	}
	return nil
}
