package wire

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// What is accepted prints as itself when it is parsed again, and has no user.
func FuzzParseRemote(f *testing.F) {
	for _, raw := range []string{"https://u:p@h:1/r", "git@h:o/r", "ssh://git@h/~x/r", "../r", "file:///r", "ext::x", "h:~/r", "me@[::1]:r", "https://h/a%20b%25"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := ParseRemote(raw, "/dir")
		if err != nil {
			return
		}
		again, err := ParseRemote(r.Redacted(), "/dir")
		if r.scheme == "file" || strings.ContainsAny(r.path+r.host, "%?#") && r.scheme == "ssh" {
			return // a path is itself only if it looks like none of the others; an ssh path is printed as it is
		}
		if err != nil || again.Redacted() != r.Redacted() {
			t.Fatalf("%q is %q, which is %q, %v", raw, r.Redacted(), again.Redacted(), err)
		}
		if again.user != nil {
			t.Fatalf("%q prints with a user: %q", raw, r.Redacted())
		}
	})
}

// A list that is accepted is read by go-git alike, and is bounded by its bytes.
func FuzzReadAdvertisement(f *testing.F) {
	const h = "1234567890123456789012345678901234567890"
	for _, list := range [][]string{
		{h + " refs/heads/a\x00agent=x\n"},
		{strings.Repeat("0", 40) + " capabilities^{}\x00agent=x\n"},
		{},
		{h + " HEAD\x00agent=x\n", h + " refs/tags/v1\n", h + " refs/tags/v1^{}\n", "shallow " + h + "\n"},
		{h + " refs/tags/v1^{}\x00agent=x\n", h + " refs/tags/v1\n"},
		{h + " HEAD\x00agent=x\n", h + " refs/tags/v1^{}\n"},
		{h + " HEAD\x00agent x\n"},
	} {
		var raw strings.Builder
		for _, line := range list {
			fmt.Fprintf(&raw, "%04x%s", len(line)+4, line)
		}
		f.Add([]byte(raw.String() + "0000"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := bytes.NewReader(raw)
		adv, err := readAdvertisement(in, "")
		if err != nil {
			return
		}
		raw = raw[:len(raw)-in.Len()]
		other := packp.NewAdvRefs()
		if err := other.Decode(bytes.NewReader(raw)); err != nil && err != packp.ErrEmptyAdvRefs {
			if strings.Contains(err.Error(), "invalid capabilities") { // it wants a value of some that none needs here
				return
			}
			t.Fatalf("go-git: %v", err)
		}
		same := func(ours packfile.ID, theirs plumbing.Hash) bool { return ours.String() == theirs.String() }
		if adv.format == packfile.SHA1 && (!maps.EqualFunc(adv.refs, other.References, same) || !maps.EqualFunc(adv.peeled, other.Peeled, same)) {
			t.Fatalf("%v and go-git's %v", adv.refs, other.References)
		}
	})
}

// A report that is accepted writes back to the same bytes, but for line feeds.
func FuzzReadReport(f *testing.F) {
	f.Add([]byte("000eunpack ok\n0019ok refs/agent/ledger\n0000"))
	f.Add([]byte("000eunpack ok\n001cng refs/agent/ledger no\n0000"))
	f.Add([]byte("000eunpack ok\n001cng refs/agent/ledger ok\n0000"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		report, err := readReport(bytes.NewReader(raw), false, io.Discard)
		if err != nil {
			return
		}
		var out message
		out.line("unpack %s\n", report.unpacked)
		for _, c := range report.refs {
			if c.status == "ok" {
				out.line("ok %s\n", c.ref)
			} else {
				out.line("ng %s %s\n", c.ref, c.status)
			}
			if c.status == "ok" && !bytes.Contains(raw, []byte("ok "+c.ref)) {
				t.Fatalf("%q says ok to %q", raw, c.ref)
			}
		}
		out.flush()
		again, err := readReport(&out, false, io.Discard)
		if err != nil || again.unpacked != report.unpacked || !slices.Equal(again.refs, report.refs) {
			t.Fatalf("%+v, then %+v, %v", report, again, err)
		}
	})
}

// Bands, too, are only read as a whole.
func FuzzUnwrap(f *testing.F) {
	f.Add([]byte("0007\x01ab0007\x02cd0000"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := new(notes)
		var data bytes.Buffer
		if err := unwrap(&data, n, bytes.NewReader(raw)); err == nil && !bytes.HasSuffix(raw, []byte("0000")) {
			t.Fatalf("%q is whole", raw)
		}
		if data.Len() > len(raw) || len(n.message()) > maxMessage {
			t.Fatal("more than there was")
		}
	})
}

// However a pack is cut into reads, it passes only with its trailer.
func FuzzCopyPack(f *testing.F) {
	body := append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"), "objects"...)
	sum := sha1.Sum(body)
	f.Add(append(body, sum[:]...), 1)
	other := sha1.Sum([]byte("no pack at all"))
	f.Add(append([]byte("no pack at all"), other[:]...), 5)
	f.Add([]byte("PACK"), 3)
	f.Add([]byte(""), 1)
	f.Fuzz(func(t *testing.T, raw []byte, size int) {
		var out bytes.Buffer
		err := copyPack(&out, &pieces{raw, max(1, size)}, packfile.SHA1, 1<<20)
		whole := len(raw) >= 32 && len(raw) <= 1<<20 && bytes.HasPrefix(raw, []byte("PACK\x00\x00\x00\x02"))
		if whole {
			sum := sha1.Sum(raw[:len(raw)-20])
			whole = bytes.Equal(sum[:], raw[len(raw)-20:])
		}
		if whole != (err == nil) || err == nil && !bytes.Equal(out.Bytes(), raw) {
			t.Fatalf("whole %v, %v", whole, err)
		}
	})
}

// A pieces reads at most size bytes at once.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func TestCopyPackOfManyBlocks(t *testing.T) {
	for _, n := range []int{64<<10 - 20, 64<<10 - 1, 64 << 10, 64<<10 + 19, 200<<10 + 7} {
		body := append([]byte("PACK\x00\x00\x00\x02"), bytes.Repeat([]byte{7}, n-8)...)
		sum := sha1.Sum(body)
		pack := append(body, sum[:]...)
		var out bytes.Buffer
		if err := copyPack(&out, bytes.NewReader(pack), packfile.SHA1, 1<<20); err != nil || !bytes.Equal(out.Bytes(), pack) {
			t.Errorf("%d: %v", n, err)
		}
		for cut := 1; cut < 50; cut++ {
			if copyPack(io.Discard, bytes.NewReader(pack[:len(pack)-cut]), packfile.SHA1, 1<<20) == nil {
				t.Errorf("%d without its last %d bytes", n, cut)
			}
		}
		if err := copyPack(io.Discard, bytes.NewReader(pack), packfile.SHA1, int64(len(pack)-1)); err != ErrTooLarge {
			t.Errorf("%d over the limit: %v", n, err)
		}
	}
}

// What a server says is text without effects on a terminal.
func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31mb\r\nc\u202ed\xff")
	f.Add(strings.Repeat("é", 2000))
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []string{plain(s), oneLine(s)} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\r\x00\u202e\u009b") {
				t.Fatalf("%q", text)
			}
		}
		if one := oneLine(s); strings.Contains(one, "\n") || len(one) > 1003 {
			t.Fatalf("%q", one)
		}
	})
}
