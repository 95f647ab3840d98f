package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// Names inside a transaction directory.
const (
	TransactionFile = "transaction.json"
	EventsFile      = "events.jsonl"
	ResultFile      = "apply_result.json"
)

// Names at the root of the ledger.
const (
	ReadmeFile       = "README.md"
	SchemaFile       = "ledger.json"
	LedgerEventsFile = "events.jsonl" // the ledger's own events, once there is one
	TransactionsDir  = "transactions"
	DeniedRoot       = "denied"
	ProposedRoot     = "proposed"
)

// PatchFile is where the canonical bytes of a patch are kept.
func PatchFile(patchID string) string { return "patches/" + patchID + ".diff" }

// SealedFile is where a patch is kept encrypted (age) beside its redacted form.
func SealedFile(patchID string) string { return PatchFile(patchID) + ".age" }

// FingerprintPatch is the patch_id that a fingerprint of any kind names: what
// follows its last colon.
func FingerprintPatch(fingerprint string) string {
	return fingerprint[strings.LastIndexByte(fingerprint, ':')+1:]
}

// ArtifactFile is where the artifact with this id (bare hex SHA-256) is kept.
func ArtifactFile(id string) string { return "artifacts/" + id + ".json" }

// Dir is a transaction's directory in the ledger:
// transactions/YYYY/MM/DD/<2 hex>/<id>, the day (UTC) being the one that the
// id's ULID was made on, the hex digits the first of the id's SHA-256: a day of
// many transactions is many small directories. The id must be one that CheckID
// accepts.
func Dir(id string) string {
	return Day(idTime(id)) + "/" + canon.Hex([]byte(id))[:2] + "/" + id
}

// ReadFile reads a file of a transaction's directory.
func ReadFile(tree fs.FS, id, name string) ([]byte, error) {
	return fs.ReadFile(tree, path.Join(Dir(id), name))
}

// Day is the directory of the transactions that are made on a day (UTC).
func Day(at time.Time) string {
	return TransactionsDir + at.UTC().Format("/2006/01/02")
}

// Within returns the transaction that a path in the ledger is at, or below, and the path inside its directory, "" for the
// directory itself.
func Within(name string) (id, inside string, ok bool) {
	if !strings.HasPrefix(name, TransactionsDir+"/") {
		return "", "", false
	}
	at := 0
	for range 5 {
		_, after, _ := strings.Cut(name[at:], "/")
		at = len(name) - len(after)
	}
	if id, inside, _ = strings.Cut(name[at:], "/"); !isID(id) || name[:at]+id != Dir(id) {
		return "", "", false
	}
	return id, inside, true
}

// IsArtifactFile reports whether a name is that of an artifact.
func IsArtifactFile(name string) bool {
	id, ok := strings.CutPrefix(name, "artifacts/")
	id, json := strings.CutSuffix(id, ".json")
	return ok && json && canon.IsHex64(id)
}

// DeniedDir is where the denials of one patch are kept, one file a kind.
func DeniedDir(patchID string) string {
	return path.Join(DeniedRoot, patchID[:2], patchID)
}

// IsDenial reports whether a path is below denied/, and no page.
func IsDenial(name string) bool { return strings.HasPrefix(name, DeniedRoot+"/") && !IsPage(name) }

// ProposedDir is where the transactions that propose a patch are listed, one
// file each.
func ProposedDir(patchID string) string {
	return path.Join(ProposedRoot, patchID[:2], patchID)
}

// A Listed is one file below proposed/, named <transaction id>.json: it finds
// the transactions of a patch without a scan.
type Listed struct {
	BaseCommit    string `json:"base_commit"`
	TransactionID string `json:"transaction_id"`
}

// PullDir is where the transactions that propose a change to a pull request are
// listed, one file each, as in ProposedDir.
func PullDir(number int) string {
	return path.Join(ProposedRoot, "pulls", fmt.Sprintf("%02x", number%256), strconv.Itoa(number))
}

var pageName = canon.Regexp(`^(README\.md|transactions(/[0-9]{4,5}(/[0-9]{2}(/[0-9]{2}(/[0-9a-f]{2})?)?)?)?/README\.md|denied(/[0-9a-f]{2})?/README\.md)(/|$)`)

// PageAt returns the page (package page) whose place a path is, or is below: README.md at the root, of a transaction's
// directory, and the tables: of transactions/ and its years, months, days and folders of these, of denied/ and its folders.
// No record has anything there, and no rule of one looks there.
func PageAt(name string) (page string, ok bool) {
	if !strings.Contains(name, ReadmeFile) {
		return "", false
	}
	if _, inside, ok := Within(name); ok {
		if first, _, _ := strings.Cut(inside, "/"); first != ReadmeFile {
			return "", false
		}
		return name[:len(name)-len(inside)] + ReadmeFile, true
	}
	at := pageName().FindStringSubmatch(name)
	if at == nil {
		return "", false
	}
	return at[1], true
}

// IsPage reports whether a path is the place of a page, or below one.
func IsPage(name string) bool {
	_, ok := PageAt(name)
	return ok
}

// A Denial is one file below denied/: a decision that sticks.
type Denial struct {
	Fingerprint   string `json:"fingerprint"`
	Kind          string `json:"kind"`
	TransactionID string `json:"transaction_id"`
	Author        Actor  `json:"author"`
	Reason        string `json:"reason"`
	DeniedAt      string `json:"denied_at"`
}

// KindRisks is the kind of the artifact that lists what a reader of the patch may
// overlook, and RisksSchema its schema; package risk makes it.
const (
	KindRisks   = "risks"
	RisksSchema = "countersign/risks/1"
)

// KindAdvice is the kind of the artifact in which somebody recorded what a tool claims of a patch (package approval).
const KindAdvice = "advice"

// KindFindings is the kind of the artifact that lists what a validate found that was
// not as approved, and FindingsSchema its schema. It has at most MaxFindings.
const (
	KindFindings   = "findings"
	FindingsSchema = "countersign/findings/1"
	MaxFindings    = 50
)

// Findings are what it holds. More says how many are left out.
type Findings struct {
	Schema     string            `json:"schema"`
	Violations []canon.Violation `json:"violations"`
	More       int               `json:"more,omitempty"`
}

// ReadDocument reads a JSON document of a transaction's directory.
func ReadDocument(dir fs.FS, name string, doc any) error {
	raw, err := fs.ReadFile(dir, name)
	if err == nil {
		err = canon.UnmarshalDocument("it", raw, doc)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// ReadFindings reads those that a validate/complete names.
func ReadFindings(dir fs.FS, name string) (f Findings, err error) {
	err = ReadDocument(dir, name, &f)
	if err == nil && (f.Schema != FindingsSchema || len(f.Violations) == 0 || len(f.Violations) > MaxFindings) {
		err = errors.New("it lists no findings")
	}
	return f, err
}

// IDPrefix begins an id.
const IDPrefix = "tx_"

// crockford are the digits of a ULID.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// CheckID is an error unless s is a whole transaction id: "tx_" and a ULID, 26 digits of which the first is at most 7.
func CheckID(s string) error {
	if !isID(s) {
		return fmt.Errorf("%q is not a transaction id", s)
	}
	return nil
}

func isID(s string) bool {
	body, ok := strings.CutPrefix(s, IDPrefix)
	return ok && len(body) == 26 && body[0] <= '7' && strings.Trim(body, crockford) == ""
}

// idTime is when an id was made: its first ten digits are milliseconds since 1970. What CheckID refuses is of no time.
func idTime(id string) time.Time {
	if !isID(id) {
		return time.Time{}
	}
	at := int64(0)
	for _, digit := range id[len(IDPrefix):][:10] {
		at = at<<5 | int64(strings.IndexRune(crockford, digit))
	}
	return time.UnixMilli(at).UTC()
}
