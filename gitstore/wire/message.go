package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// A session is one conversation with a service of the server.
type session interface {
	// list is the server's list of refs.
	list(ctx context.Context) (*refList, error)
	// fetch asks for a pack, and returns the answer as it comes.
	fetch(ctx context.Context, request []byte) (io.Reader, error)
	// push sends a command and a pack, and returns the server's report.
	push(ctx context.Context, command, pack []byte, sideband bool) (*report, error)
	close()
}

// A client begins sessions. One Server alone uses it.
type client interface {
	begin(*notes) // a new call, which tells its troubles there
	open(service string) session
	Close() error
}

// The services of a server.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// A refList is what a server says of itself: its refs, what its annotated tags are about, and what it can do.
type refList struct {
	head         packfile.ID
	refs, peeled map[string]packfile.ID
	can          capabilities
	format       packfile.Format
}

// capabilities are names, or NAME=VALUE (gitprotocol-capabilities(5)).
type capabilities []string

func (c capabilities) has(name string) bool {
	return slices.ContainsFunc(c, func(one string) bool { key, _, _ := strings.Cut(one, "="); return key == name })
}

// A report is what receive-pack says that it did: "ok", or why not.
type report struct {
	unpacked string
	refs     []refStatus
}

type refStatus struct{ ref, status string }

// message collects pkt-lines, none of which is as long as the protocol forbids: names of refs are bounded.
type message struct{ bytes.Buffer }

func (m *message) line(format string, args ...any) {
	_ = pktline.NewEncoder(&m.Buffer).Encodef(format, args...)
}

func (m *message) ids(word string, ids []packfile.ID) {
	sorted := slices.Clone(ids)
	slices.SortFunc(sorted, packfile.ID.Compare)
	for _, id := range slices.Compact(sorted) {
		m.line("%s %s\n", word, id)
	}
}

func (m *message) flush() { m.Write(pktline.FlushPkt) }

// encode is the request of a fetch (gitprotocol-pack(5), "Packfile Negotiation").
func (r FetchRequest) encode(want capabilities) []byte {
	var m message
	wants := slices.Clone(r.Wants)
	slices.SortFunc(wants, packfile.ID.Compare)
	m.line("want %s %s\n", wants[0], strings.Join(want, " "))
	m.ids("want", slices.DeleteFunc(wants, func(id packfile.ID) bool { return id == wants[0] }))
	m.ids("shallow", r.Shallow)
	if r.Depth > 0 {
		m.line("deepen %d\n", r.Depth)
	}
	if r.Filter != "" {
		m.line("filter %s\n", r.Filter)
	}
	m.flush()
	m.ids("have", r.Haves)
	m.line("done\n")
	return m.Bytes()
}

// packOf reads an answer to a fetch up to its pack: where a shallow history ends, if a depth was
// asked for, and what of ours the server has.
func packOf(answer io.Reader, depth int) (*bufio.Reader, error) {
	in := bufio.NewReader(answer)
	for ends := depth == 0; ; {
		head, err := in.Peek(8)
		if err != nil {
			return nil, cutOr(err)
		}
		word := string(head[4:])
		switch known := word == "ACK " || strings.HasPrefix(word, "NAK") || word == "ERR "; { // the scanner makes an error of the last
		case string(head[:4]) == "0000" && !ends:
			ends = true
			if _, err := in.Discard(4); err != nil {
				return nil, err
			}
		case ends && !known:
			return in, nil
		default:
			line, err := readLines(in).next()
			if err != nil {
				return nil, err
			}
			text := string(line)
			if un, id, cut := strings.Cut(text, "shallow "); !ends && (!cut || un != "" && un != "un" || !packfile.IsID(id)) {
				return nil, fmt.Errorf("the answer has the line %q", text[:min(len(text), 80)])
			}
		}
	}
}

// cutOr is errCut where an answer has ended.
func cutOr(err error) error {
	if isEnd(err) {
		return errCut
	}
	return err
}

// bands reads the data of a side-band-64k stream as it comes.
type bands struct {
	from *pktline.Scanner
	rest []byte
	said io.Writer
	over error
}

func (b *bands) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.over == nil {
			b.over = b.next()
		}
		if b.over != nil {
			return 0, b.over
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// next reads a line, and io.EOF after the last.
func (b *bands) next() error {
	if !b.from.Scan() {
		if err := b.from.Err(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return io.ErrUnexpectedEOF // io.EOF is the end that the server says
	}
	line := b.from.Bytes()
	switch {
	case len(line) == 0:
		return io.EOF
	case line[0] == 1:
		b.rest = line[1:]
	case line[0] == 2:
		_, err := b.said.Write(line[1:])
		return err
	case line[0] == 3:
		return fmt.Errorf("the server ended with an error: %s", plain(string(line[1:])))
	default:
		return fmt.Errorf("the answer has an unknown band %d", line[0])
	}
	return nil
}
