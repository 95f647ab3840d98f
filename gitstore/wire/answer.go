package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Limits on what a server may make us keep. 64 MiB are half a million refs.
const (
	maxAdvertisement = 64 << 20
	maxReport        = 4 << 20
	maxHead          = 4 << 20 // what comes before a pack: 80,000 shallow commits
)

// A lines reads pkt-lines; none is empty but a flush.
type lines struct{ s *pktline.Scanner }

func readLines(r io.Reader) lines { return lines{pktline.NewScanner(r)} }

var errCut = errors.New("the answer ends too early")

// next returns a line without its line feed, and nil for a flush.
func (l lines) next() ([]byte, error) {
	switch {
	case l.s.Scan():
	case l.s.Err() == nil || errors.Is(l.s.Err(), io.EOF) || errors.Is(l.s.Err(), io.ErrUnexpectedEOF):
		return nil, errCut
	default:
		return nil, l.s.Err()
	}
	if len(l.s.Bytes()) == 0 {
		return nil, nil
	}
	line := bytes.TrimSuffix(l.s.Bytes(), []byte("\n"))
	if len(line) == 0 {
		return nil, errors.New("the answer has an empty line")
	}
	return line, nil
}

// end fails unless the answer has ended.
func (l lines) end() error {
	if l.s.Scan() {
		return errors.New("the answer goes on after its end")
	}
	return l.s.Err()
}

// readAdvertisement reads a list of refs up to its flush, and not beyond. With
// a service it begins as one over HTTP does. There is no doubt about any line
// of what it returns: names are there once, hashes are hashes.
func readAdvertisement(r io.Reader, service string) (*packp.AdvRefs, error) {
	in := readLines(r)
	if service != "" {
		if err := in.serviceLine(service); err != nil {
			return nil, err
		}
	}
	adv := packp.NewAdvRefs()
	line, err := in.next()
	if err != nil || line == nil {
		return adv, err
	}
	first, caps, ok := bytes.Cut(line, []byte{0})
	if !ok {
		return nil, fmt.Errorf("the list of refs begins with %q", line[:min(len(line), 80)])
	}
	if err := adv.Capabilities.Decode(caps); err != nil {
		return nil, fmt.Errorf("reading the server's capabilities: %w", err)
	}
	for _, format := range adv.Capabilities.Get(capability.ObjectFormat) {
		if format != "sha1" {
			return nil, &HashError{format}
		}
	}
	hash, name, _ := strings.Cut(string(first), " ")
	none := name == "capabilities^{}" // the line only carries the capabilities
	switch {
	case none && hash != plumbing.ZeroHash.String():
		return nil, errors.New("the list of refs has a hash where it says that there are none")
	case none:
	case bytes.HasSuffix(first, []byte("^{}")):
		return nil, errors.New("the list of refs begins with what a tag points to")
	default:
		if err := addRef(adv, first); err != nil {
			return nil, err
		}
	}
	for {
		line, err := in.next()
		if err != nil || line == nil {
			return adv, err
		}
		if cut, ok := bytes.CutPrefix(line, []byte("shallow ")); ok { // where the server's own history is cut off
			commit, err := readHash(cut)
			if err != nil {
				return nil, err
			}
			adv.Shallows = append(adv.Shallows, commit)
			continue
		}
		if none {
			return nil, errors.New("the list of refs has some after saying that there are none")
		}
		if err := addRef(adv, line); err != nil {
			return nil, err
		}
	}
}

func (l lines) serviceLine(service string) error {
	line, err := l.next()
	if err != nil {
		return err
	}
	if string(line) != "# service="+service {
		return fmt.Errorf("the answer is not one of %s", service)
	}
	if line, err = l.next(); err == nil && line != nil {
		err = fmt.Errorf("the answer of %s has no flush after its name", service)
	}
	return err
}

func addRef(adv *packp.AdvRefs, line []byte) error {
	text, name, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \x00\n\r\t") {
		return fmt.Errorf("the list of refs has the line %q", line[:min(len(line), 80)])
	}
	hash, err := readHash(text)
	if err != nil {
		return err
	}
	if hash.IsZero() {
		return fmt.Errorf("the list of refs has %q at the zero hash", name)
	}
	if string(name) == "HEAD" {
		if adv.Head != nil {
			return errors.New("the list of refs has HEAD twice")
		}
		adv.Head = &hash
		return nil
	}
	to := adv.References
	if of, peeled := bytes.CutSuffix(name, []byte("^{}")); peeled {
		name, to = of, adv.Peeled
	}
	if _, twice := to[string(name)]; twice {
		return fmt.Errorf("the list of refs has %q twice", name)
	}
	to[string(name)] = hash
	return nil
}

func readHash(text []byte) (h plumbing.Hash, err error) {
	if len(text) != hex.EncodedLen(len(h)) {
		return h, errors.New("the answer has a hash of the wrong length")
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return plumbing.ZeroHash, errors.New("the answer has a malformed hash")
	}
	return h, nil
}

// readReport reads a whole answer of receive-pack. With sideband it is
// unwrapped first, and what is meant for the person goes to said.
func readReport(r io.Reader, sideband bool, said io.Writer) (*packp.ReportStatus, error) {
	if sideband {
		var inner bytes.Buffer
		if err := unwrap(&inner, said, r); err != nil {
			return nil, err
		}
		r = &inner
	}
	in := readLines(r)
	line, err := in.next()
	if err != nil {
		return nil, err
	}
	status, ok := strings.CutPrefix(string(line), "unpack ")
	if !ok || status == "" {
		return nil, errors.New("the report does not begin with unpack")
	}
	report := &packp.ReportStatus{UnpackStatus: status}
	for {
		line, err := in.next()
		if err != nil {
			return nil, err
		}
		if line == nil {
			return report, in.end()
		}
		word, rest, _ := strings.Cut(string(line), " ")
		ref, reason, reasoned := strings.Cut(rest, " ")
		switch {
		case ref != "" && word == "ok" && !reasoned:
			reason = "ok"
		case ref != "" && word == "ng" && reason == "ok": // go-git reads it as success
			return nil, errors.New("the report says no and ok at once")
		case ref != "" && word == "ng" && reason != "":
		default:
			return nil, fmt.Errorf("the report has the line %q", line[:min(len(line), 200)])
		}
		c := &packp.CommandStatus{ReferenceName: plumbing.ReferenceName(ref), Status: reason}
		report.CommandStatuses = append(report.CommandStatuses, c)
	}
}

// unwrap takes a side-band-64k stream apart, to its flush and its end.
func unwrap(data *bytes.Buffer, said io.Writer, r io.Reader) error {
	s := pktline.NewScanner(r)
	for s.Scan() {
		line := s.Bytes()
		switch {
		case len(line) == 0:
			return lines{s}.end()
		case line[0] == 1:
			data.Write(line[1:])
		case line[0] == 2:
			if _, err := said.Write(line[1:]); err != nil {
				return err
			}
		case line[0] == 3:
			return fmt.Errorf("the server ended with an error: %s", line[1:])
		default:
			return fmt.Errorf("the answer has an unknown band %d", line[0])
		}
	}
	if s.Err() != nil && !errors.Is(s.Err(), io.EOF) && !errors.Is(s.Err(), io.ErrUnexpectedEOF) {
		return s.Err()
	}
	return errCut
}
