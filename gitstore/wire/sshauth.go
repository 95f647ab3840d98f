package wire

import (
	"errors"
	"fmt"
	"net"
	"os"

	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// SSH is how we are known to an ssh server, and it to us. At least one of Key,
// KeyFile and AgentSocket is needed.
type SSH struct {
	User string // where the URL names none; "" is git

	Key         []byte // a private key, PEM or OpenSSH
	KeyFile     string // or a file with one, read at each connection
	Passphrase  []byte // of the key, if it has one
	AgentSocket string // SSH_AUTH_SOCK

	// KnownHosts are files in the format of known_hosts. Empty are the files
	// in $SSH_KNOWN_HOSTS, else ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts.
	// A server whose key is in none is refused.
	KnownHosts []string

	// Config looks up Hostname, Port and User of a host in ssh_config(5). Nil
	// is no such file.
	Config func(host, key string) string
}

// config puts together what a connection needs; done is called when it is made.
func (c *sshClient) config(address string) (config *ssh.ClientConfig, done func(), err error) {
	known, err := gitssh.NewKnownHostsDb(c.ssh.KnownHosts...)
	if err != nil {
		return nil, nil, &HostKeyError{err}
	}
	methods, done, err := c.ssh.methods()
	if err != nil {
		return nil, nil, &AuthError{Err: err}
	}
	return &ssh.ClientConfig{
		User:              c.user(),
		Auth:              methods,
		HostKeyCallback:   known.HostKeyCallback(),
		HostKeyAlgorithms: known.HostKeyAlgorithms(address),
	}, done, nil
}

func (c *sshClient) user() string {
	if c.remote.user != nil && c.remote.user.Username() != "" {
		return c.remote.user.Username()
	}
	if c.ssh.Config != nil {
		if user := c.ssh.Config(c.remote.host, "User"); user != "" {
			return user
		}
	}
	if c.ssh.User != "" {
		return c.ssh.User
	}
	return gitssh.DefaultUsername
}

// methods offers the key first and then those of the agent.
func (s SSH) methods() (methods []ssh.AuthMethod, done func(), err error) {
	done = func() {}
	var signers []ssh.Signer
	key := s.Key
	if s.KeyFile != "" {
		if key, err = os.ReadFile(s.KeyFile); err != nil {
			return nil, nil, fmt.Errorf("reading the key: %w", err)
		}
	}
	if len(key) > 0 {
		signer, err := s.parseKey(key)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the key: %w", err)
		}
		signers = append(signers, signer)
	}
	if s.AgentSocket == "" && len(signers) == 0 {
		return nil, nil, errors.New("there is neither a key nor an agent")
	}
	var keys agent.Agent
	if s.AgentSocket != "" {
		conn, err := net.Dial("unix", s.AgentSocket)
		if err != nil {
			return nil, nil, fmt.Errorf("asking the agent: %w", err)
		}
		keys, done = agent.NewClient(conn), func() { _ = conn.Close() }
	}
	return []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
		if keys == nil {
			return signers, nil
		}
		more, err := keys.Signers()
		return append(signers[:len(signers):len(signers)], more...), err
	})}, done, nil
}

func (s SSH) parseKey(pem []byte) (ssh.Signer, error) {
	if len(s.Passphrase) == 0 {
		return ssh.ParsePrivateKey(pem)
	}
	return ssh.ParsePrivateKeyWithPassphrase(pem, s.Passphrase)
}
