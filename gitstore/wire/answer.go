package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// objectFormat begins the capability that names it.
const objectFormat = "object-format="

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
func readAdvertisement(r io.Reader, service string) (*refList, error) {
	in := readLines(r)
	if service != "" {
		if err := in.serviceLine(service); err != nil {
			return nil, err
		}
	}
	adv := &refList{can: capabilities{}, refs: map[string]packfile.ID{}, peeled: map[string]packfile.ID{}, format: packfile.SHA1}
	line, err := in.next()
	if err != nil || line == nil {
		return adv, err
	}
	first, caps, ok := bytes.Cut(line, []byte{0})
	if !ok {
		return nil, fmt.Errorf("the list of refs begins with %q", line[:min(len(line), 80)])
	}
	adv.can = strings.Fields(string(caps))
	for _, can := range adv.can {
		if strings.HasSuffix(can, "=") {
			return nil, fmt.Errorf("the server's capability %.80q has no value", can)
		}
		if name, named := strings.CutPrefix(can, objectFormat); named {
			if adv.format, named = packfile.ParseFormat(name); !named {
				return nil, OtherFormat(name)
			}
		}
	}
	hash, name, _ := strings.Cut(string(first), " ")
	none := name == "capabilities^{}" // the line only carries the capabilities
	switch {
	case none && hash != adv.format.Hex(packfile.None):
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
			if _, err := readHash(adv.format, cut); err != nil {
				return nil, err
			}
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

func addRef(adv *refList, line []byte) error {
	text, name, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \x00\n\r\t") {
		return fmt.Errorf("the list of refs has the line %q", line[:min(len(line), 80)])
	}
	hash, err := readHash(adv.format, text)
	if err != nil {
		return err
	}
	if hash.IsZero() {
		return fmt.Errorf("the list of refs has %q at the zero hash", name)
	}
	if string(name) == "HEAD" {
		if !adv.head.IsZero() {
			return errors.New("the list of refs has HEAD twice")
		}
		adv.head = hash
		return nil
	}
	to := adv.refs
	if of, peeled := bytes.CutSuffix(name, []byte("^{}")); peeled {
		name, to = of, adv.peeled
	}
	if _, twice := to[string(name)]; twice {
		return fmt.Errorf("the list of refs has %q twice", name)
	}
	to[string(name)] = hash
	return nil
}

func readHash(f packfile.Format, text []byte) (packfile.ID, error) {
	if len(text) != 2*f.Size() {
		return packfile.None, errors.New("the answer has a hash of the wrong length")
	}
	if !packfile.IsID(string(text)) {
		return packfile.None, errors.New("the answer has a malformed hash")
	}
	return packfile.ParseID(string(text)), nil
}

// readReport reads a whole answer of receive-pack. With sideband it is
// unwrapped first, and what is meant for the person goes to said.
func readReport(r io.Reader, sideband bool, said io.Writer) (*report, error) {
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
	out := &report{unpacked: status}
	for {
		line, err := in.next()
		if err != nil {
			return nil, err
		}
		if line == nil {
			return out, in.end()
		}
		word, rest, _ := strings.Cut(string(line), " ")
		ref, reason, reasoned := strings.Cut(rest, " ")
		switch {
		case ref != "" && word == "ok" && !reasoned:
			reason = "ok"
		case ref != "" && word == "ng" && reason == "ok":
			return nil, errors.New("the report says no and ok at once")
		case ref != "" && word == "ng" && reason != "":
		default:
			return nil, fmt.Errorf("the report has the line %q", line[:min(len(line), 200)])
		}
		out.refs = append(out.refs, refStatus{ref, reason})
	}
}

// unwrap takes a side-band-64k stream apart, to its flush and its end.
func unwrap(data *bytes.Buffer, said io.Writer, r io.Reader) error {
	from := &bands{from: pktline.NewScanner(r), said: said}
	if _, err := data.ReadFrom(from); err != nil {
		return cutOr(err)
	}
	return lines{from.from}.end()
}
