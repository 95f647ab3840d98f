package evidence

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// PacketSchema is the format of a Manifest, PacketNamespace that of its signature, Method how a sample is drawn.
const (
	PacketSchema    = "countersign/packet/1"
	PacketNamespace = "countersign-packet@v1"
	Method          = "sha256(seed,0,commit)"
)

// MaxSample is how many changes a sample has at most: each packet has the list of all of them.
const MaxSample = 250

// The names of files.
const (
	ManifestFile  = "manifest.json"
	SignatureFile = "manifest.json.sig"
	ReadmeFile    = "README.txt"
	ReportFile    = "evidence.json"
	ItemFile      = "item.json"
)

// A Manifest lists every file of a sample but itself and its signature. Files are those beside the packets, Asked is how
// many changes were to be drawn, of which there may be fewer.
//
// A sample is a directory with a packet, itself a directory, for each change that was drawn:
//
//	manifest.json              a [Manifest]: canonical JSON and one LF
//	manifest.json.sig          its SSH signature for the namespace "countersign-packet@v1", if it was signed
//	README.txt                 how to check it without this program
//	evidence.json              the report that was drawn from: the population
//	01-3b18e512dba7/
//	    manifest.json          the same again, and the two next to it: a packet can be handed on alone
//	    manifest.json.sig
//	    README.txt
//	    item.json              the change, as it is in evidence.json: canonical JSON and one LF
//	    index.html             what is known of the change, and from where
//	    tx_….html              the page of each transaction that tells of it
//	    3b18e512….diff         what each of its commits changes, in canonical bytes
//	    transactions/…         the records of these transactions, as the ledger has them
//
// The population are the rows of the report that have a commit. They are put in the order of
//
//	SHA-256(seed, a byte 0, commit)
//
// with the seed in UTF-8 and the commit in lower hex, rows of the same commit in that of their repositories' names;
// the sample are the first of them.
type Manifest struct {
	Schema       string   `json:"schema"`
	MadeAt       string   `json:"made_at"`
	Repository   string   `json:"repository"`
	Branch       string   `json:"branch"`
	Commit       string   `json:"commit"`
	LedgerRef    string   `json:"ledger_ref"`
	LedgerCommit string   `json:"ledger_commit"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	Method       string   `json:"method"`
	Seed         string   `json:"seed"`
	Population   int      `json:"population"`
	Asked        int      `json:"asked"`
	Files        []File   `json:"files"`
	Packets      []Packet `json:"packets"`
}

// A Packet is one change of the sample. Transactions are those whose records it has.
type Packet struct {
	Dir          string   `json:"dir"`
	Commit       string   `json:"commit"`
	Transactions []string `json:"transactions"`
	Files        []File   `json:"files"`
}

// A File is one by its path below the directory, with its size in bytes and its SHA-256.
type File struct {
	Path   string `json:"path"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

// NewPacket is the manifest of a sample of one repository's report, yet without files, and the rows that were drawn.
func NewPacket(r Report, seed string, asked int) (m Manifest, drawn []Row) {
	repo := r.Repositories[0]
	m = Manifest{
		Schema: PacketSchema, MadeAt: r.MadeAt, Repository: repo.Name, Branch: repo.Branch, Commit: repo.Commit, LedgerRef: repo.LedgerRef, LedgerCommit: repo.LedgerCommit,
		From: r.From, To: r.To, Method: Method, Seed: seed, Asked: asked, Files: []File{}, Packets: []Packet{},
	}
	drawn, m.Population = DrawSample(r.Rows, seed, asked)
	for i, row := range drawn {
		p := Packet{Dir: fmt.Sprintf("%02d-%.12s", i+1, row.Commit), Commit: row.Commit, Transactions: []string{}, Files: []File{}}
		for _, rec := range row.Records {
			p.Transactions = append(p.Transactions, rec.TransactionID)
		}
		m.Packets = append(m.Packets, p)
	}
	return m, drawn
}

// DrawSample draws changes out of rows, in the order in which they are drawn, and counts the population.
func DrawSample(rows []Row, seed string, asked int) (drawn []Row, population int) {
	changes := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Commit == "" })
	key := func(r Row) string { return canon.Hex([]byte(seed + "\x00" + r.Commit)) }
	slices.SortFunc(changes, func(a, b Row) int {
		return cmp.Or(strings.Compare(key(a), key(b)), strings.Compare(a.Repository, b.Repository))
	})
	return changes[:min(asked, len(changes))], len(changes)
}

// CheckSeed is an error unless a seed is a text that people can read and write down.
func CheckSeed(seed string) error {
	hidden := func(r rune) bool { return !ledger.Visible(r) }
	if seed == "" || len(seed) > 200 || !utf8.ValidString(seed) || strings.ContainsFunc(seed, hidden) {
		return fmt.Errorf("the seed %+.200q is no text of 1 to 200 bytes that can be seen", seed)
	}
	return nil
}

// ListFile is how a manifest lists a file.
func ListFile(path string, data []byte) File { return File{path, len(data), canon.Hex(data)} }

// Bytes is a manifest as it is written and signed.
func (m Manifest) Bytes() ([]byte, error) { return canon.Line(m) }

// filePath are the names that files have here: none can be read in two ways, on whatever system.
var filePath = canon.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

// ParsePacket reads a manifest in its one form, and no other. It is a *canon.NewerError for one that a newer version wrote.
func ParsePacket(raw []byte) (m Manifest, err error) {
	if err := canon.CheckDocument("the manifest", raw); err != nil {
		return m, err
	}
	if err := canon.Unmarshal(raw, &m); err != nil {
		return m, err
	}
	if !bytes.HasSuffix(raw, []byte("\n")) {
		return m, errors.New("it does not end with a newline")
	}
	if m.Schema != PacketSchema || m.Method != Method {
		return m, fmt.Errorf("its schema is %+.100q and its method %+.100q, not %s and %s", m.Schema, m.Method, PacketSchema, Method)
	}
	if want := min(m.Asked, m.Population); len(m.Packets) != want || m.Asked > MaxSample {
		return m, fmt.Errorf("it has %d packets, and %d of %d changes were asked for", len(m.Packets), m.Asked, m.Population)
	}
	if !canon.IsGitID(m.Commit) || !canon.IsGitID(m.LedgerCommit) {
		return m, fmt.Errorf("it names commits %+.100q and %+.100q, which are no ids", m.Commit, m.LedgerCommit)
	}
	for _, p := range m.Packets {
		if !canon.IsGitID(p.Commit) || !filePath().MatchString(p.Dir) || strings.Contains(p.Dir, "/") {
			return m, fmt.Errorf("it has packet %+.100q of commit %+.100q, which are no names", p.Dir, p.Commit)
		}
	}
	if _, err := ParsePeriod(m.From, m.To); err != nil {
		return m, err
	}
	seen := map[string]bool{}
	for _, f := range m.all() {
		folded := strings.ToLower(f.Path)
		if !filePath().MatchString(f.Path) || seen[folded] || slices.Contains([]string{ManifestFile, SignatureFile}, path.Base(folded)) {
			return m, fmt.Errorf("it lists %+.200q, which is no name, or is listed twice", f.Path)
		}
		seen[folded] = true
	}
	return m, CheckSeed(m.Seed)
}

// all are the files of a whole sample but the copies of the manifest and its signature.
func (m Manifest) all() []File {
	all := slices.Clone(m.Files)
	for _, p := range m.Packets {
		for _, f := range p.Files {
			f.Path = p.Dir + "/" + f.Path
			all = append(all, f)
		}
	}
	return all
}
