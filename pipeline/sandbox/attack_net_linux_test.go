package sandbox_test

import (
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// dial sends the token and waits for the answer, so that a datagram counts only when received.
func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, soon)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(soon))
	if _, err := io.WriteString(c, token); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// serve is a server and its client on the loopback of this process.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go answer(l)
	return dial("tcp", l.Addr().String())
}

func serveUDP() error {
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go echo(p)
	return dial("udp", p.LocalAddr().String())
}

// echo answers every datagram.
func echo(p net.PacketConn) {
	b := make([]byte, 100)
	for {
		_, from, err := p.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = p.WriteTo([]byte("!"), from)
	}
}

func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 100))
		_, _ = c.Write([]byte("!"))
		_ = c.Close()
	}
}

// family is denied only where the filter says so: kernels lack families as well.
func family(n int) error {
	if _, err := unix.Socket(n, unix.SOCK_SEQPACKET, 0); err == unix.EACCES {
		return err
	}
	return nil
}
