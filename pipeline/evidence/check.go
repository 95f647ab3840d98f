package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// A CheckedPacket is what was looked at of a sample, or of a packet alone, and what came of it. Within has the directories of the packets
// that are there, by their names: "." for a packet alone; none if its files are not those that are listed.
type CheckedPacket struct {
	Manifest
	Within map[string]Packet
	Checks []explain.Check
}

// OK reports whether nothing is wrong.
func (c CheckedPacket) OK() bool {
	return !slices.ContainsFunc(c.Checks, func(one explain.Check) bool { return one.Outcome == explain.Bad })
}

// Add notes what came of a check: problems, or the text if there is none.
func (c *CheckedPacket) Add(what string, problems []string, good string, args ...any) {
	one := explain.Check{What: what, Outcome: explain.Good, Message: fmt.Sprintf(good, args...)}
	if n := len(problems); n > 0 {
		one.Outcome, one.Message = explain.Bad, problems[0]
		if n > 1 {
			one.Message += fmt.Sprintf(" (and %d more)", n-1)
		}
	}
	c.Checks = append(c.Checks, one)
}

// CheckPacket checks a whole sample, or a packet alone: that somebody who is allowed signed the manifest, and that the directory has each file
// that it lists, as it lists it, and nothing else. If so, the sample has to be what its seed draws, and each record to hold to
// its own rules. Nil signers allow nobody. The error is a *canon.NewerError; all else that is wrong with the directory is a
// check that is bad.
func CheckPacket(dir fs.FS, signers *sshsig.Allowed, at time.Time) (CheckedPacket, error) {
	c := CheckedPacket{Within: map[string]Packet{}}
	raw, err := readFile(dir, ManifestFile)
	if err == nil {
		c.Manifest, err = ParsePacket(raw)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("there is none")
	}
	if err != nil {
		c.Add("manifest", []string{ManifestFile + ": " + err.Error()}, "")
		if !errors.As(err, new(*canon.NewerError)) {
			err = nil
		}
		return c, err
	}
	signature, err := readFile(dir, SignatureFile)
	if err != nil {
		signature = nil // and is one file too many if it is there
	}
	c.signature(raw, signature, signers, at)
	problems := c.choose(dir)
	listed := map[string]File{}
	for name, p := range c.Within {
		for _, f := range append(copies(raw, signature), p.Files...) {
			listed[path.Join(name, f.Path)] = f
		}
	}
	if _, alone := c.Within["."]; !alone {
		for _, f := range append(copies(raw, signature), c.Files...) {
			listed[f.Path] = f
		}
	}
	if problems = append(problems, c.tooLarge()...); len(problems) == 0 {
		problems = comparePacket(dir, listed)
	}
	c.Add("files", problems, "each of %d files is as the manifest lists it, and there is no other", len(listed))
	if len(problems) > 0 {
		c.Within = nil // nothing else here is worth reading
		return c, nil
	}
	c.sample(dir)
	return c, c.records(dir)
}

// readFile reads a small file, if it is one: a pipe would keep who opens it waiting.
func readFile(dir fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(dir, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxRead:
		return nil, fmt.Errorf("it is no regular file of at most %d bytes", maxRead)
	}
	return fs.ReadFile(dir, name)
}

// maxRead bounds a manifest and a change.
const maxRead = 64 << 20

// copies are the files that each packet has, and the manifest does not list.
func copies(raw, signature []byte) []File {
	if signature == nil {
		return []File{ListFile(ManifestFile, raw)}
	}
	return []File{ListFile(ManifestFile, raw), ListFile(SignatureFile, signature)}
}

func (c *CheckedPacket) signature(raw, signature []byte, signers *sshsig.Allowed, at time.Time) {
	var who, key string
	err := errors.New("nobody vouches for it: it is not signed")
	switch {
	case signature == nil:
	case signers == nil:
		if key, err = sshsig.MadeWith(PacketNamespace, raw, string(signature)); err == nil {
			err = fmt.Errorf("nobody vouches for it: %s signed it, and no allowed signers are given", key)
		}
	default:
		who, key, err = signers.Verify(PacketNamespace, raw, string(signature), at)
	}
	var problems []string
	if err != nil {
		problems = []string{err.Error()}
	}
	c.Add("signature", problems, "%s signed it with %s", who, key)
}

// choose finds out which packets are there: the one whose change the directory has, or all of them.
func (c *CheckedPacket) choose(dir fs.FS) (problems []string) {
	item, err := readFile(dir, ItemFile)
	if errors.Is(err, fs.ErrNotExist) {
		for _, p := range c.Packets {
			c.Within[p.Dir] = p
		}
		return nil
	}
	for _, p := range c.Packets {
		if slices.Contains(p.Files, ListFile(ItemFile, item)) {
			c.Within["."] = p
			return nil
		}
	}
	return []string{ItemFile + " is of no packet of the manifest"}
}

// comparePacket compares a directory with what is listed of it.
func comparePacket(dir fs.FS, listed map[string]File) (problems []string) {
	there, dirs := map[string]bool{}, map[string]bool{".": true}
	for name := range listed {
		for above := path.Dir(name); !dirs[above]; above = path.Dir(above) {
			dirs[above] = true
		}
	}
	_ = fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		f, known := listed[name]
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case d.IsDir() && dirs[name]:
		case !known:
			problems = append(problems, fmt.Sprintf("%+q is there, and is not listed", name))
		case !d.Type().IsRegular():
			problems = append(problems, name+" is no regular file")
		default:
			there[name] = true
			if err := f.compare(dir, name); err != nil {
				problems = append(problems, name+": "+err.Error())
			}
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if !there[name] {
			problems = append(problems, name+" is listed, and is not there")
		}
	}
	return problems
}

// maxWhole bounds what is read into memory of a report, or of a packet: who lists it need not be allowed to sign.
const maxWhole = 512 << 20

func (c *CheckedPacket) tooLarge() (problems []string) {
	bound := func(files []File, read func(name string) bool) {
		left := maxWhole
		for _, f := range files {
			if !read(f.Path) {
				continue
			}
			if left -= min(f.Size, maxWhole+1); left < 0 {
				problems = append(problems, fmt.Sprintf("%s is too large: more than %d bytes are not read", f.Path, maxWhole))
				return
			}
		}
	}
	bound(c.Files, func(name string) bool { return name == ReportFile })
	for _, p := range c.Within {
		bound(p.Files, func(name string) bool { return name == ItemFile || strings.HasPrefix(name, "transactions/") })
	}
	return problems
}

func (f File) compare(dir fs.FS, name string) error {
	in, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(in, int64(f.Size)+1))
	if err == nil && (n != int64(f.Size) || hex.EncodeToString(hash.Sum(nil)) != f.SHA256) {
		err = errors.New("it is not as the manifest lists it")
	}
	return err
}

// sample: the seed draws these changes, out of the report that the whole sample has.
func (c *CheckedPacket) sample(dir fs.FS) {
	const what = "sample"
	if p, alone := c.Within["."]; alone {
		n := 1 + slices.IndexFunc(c.Packets, func(o Packet) bool { return o.Dir == p.Dir })
		c.Checks = append(c.Checks, explain.Check{What: what, Outcome: explain.NotRecomputed, Message: fmt.Sprintf(
			"it is number %d of %d that were drawn of %d; the report that they were drawn from is not in one packet", n, len(c.Packets), c.Population)})
		return
	}
	raw, err := fs.ReadFile(dir, ReportFile)
	var r Report
	if err == nil {
		err = canon.Unmarshal(raw, &r)
	}
	if err == nil && len(r.Repositories) != 1 {
		err = errors.New("it is not of one repository")
	}
	var problems []string
	if err != nil {
		problems = append(problems, ReportFile+": "+err.Error())
	} else {
		problems = c.redraw(r)
	}
	c.Add(what, problems, "seed %+q draws these %d of %d changes from %s to %s", c.Seed, len(c.Packets), c.Population, c.From, c.To)
}

func (c *CheckedPacket) redraw(r Report) (problems []string) {
	again, drawn := NewPacket(r, c.Seed, c.Asked)
	again.Files = c.Files
	for i := range min(len(drawn), len(c.Packets)) {
		again.Packets[i].Files = c.Packets[i].Files
		if item, err := canon.Line(drawn[i]); err != nil || !slices.Contains(c.Packets[i].Files, ListFile(ItemFile, item)) {
			problems = append(problems, c.Packets[i].Dir+": "+ItemFile+" is not as the report has it")
		}
	}
	if !reflect.DeepEqual(again, c.Manifest) {
		problems = append(problems, "the report and the seed come to another manifest")
	}
	return problems
}

// records: each packet has the records of its change, and each holds to its own rules.
func (c *CheckedPacket) records(dir fs.FS) error {
	var problems []string
	n := 0
	for _, name := range slices.Sorted(maps.Keys(c.Within)) {
		p := c.Within[name]
		if err := p.item(dir, name); err != nil {
			problems = append(problems, path.Join(name, ItemFile)+": "+err.Error())
		}
		for _, id := range p.Transactions {
			n++
			if err := packetRecord(dir, name, id); errors.As(err, new(*canon.NewerError)) {
				return err
			} else if err != nil {
				problems = append(problems, fmt.Sprintf("%+q: %v", id, err))
			}
		}
	}
	c.Add("record", problems, "%s to the ledger's rules, and each patch is what its patch_id says", ledger.Plural(n, "record holds", "records hold"))
	return nil
}

// item: the change of a packet is the one that the manifest says, with its transactions.
func (p Packet) item(dir fs.FS, name string) error {
	raw, err := fs.ReadFile(dir, path.Join(name, ItemFile))
	if err != nil {
		return err
	}
	var row Row
	if err := canon.Unmarshal(raw, &row); err != nil {
		return err
	}
	var ids []string
	for _, rec := range row.Records {
		ids = append(ids, rec.TransactionID)
	}
	if row.Commit != p.Commit || !slices.Equal(ids, p.Transactions) {
		return errors.New("it is about another change than the manifest says")
	}
	return nil
}

// packetRecord holds a transaction's record, in a packet, to the rules of a ledger.
func packetRecord(dir fs.FS, name, id string) error {
	if err := ledger.CheckID(id); err != nil {
		return err
	}
	dir, err := fs.Sub(dir, path.Join(name, ledger.Dir(id)))
	if err != nil {
		return err
	}
	log, found := ledger.ReadExported(dir)
	if log != nil {
		found = append(found, new(approval.Policies).Record(dir, log).Redo()...)
		if log.Transaction().TransactionID != id {
			return errors.New("the record is another transaction's")
		}
	}
	if len(found) == 0 {
		return nil
	}
	return canon.ErrorOf(found)
}
