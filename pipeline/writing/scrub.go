package writing

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Scrubber takes secrets out of what is about to be stored, or shown. The
// same input gives the same output, and what it returned it returns again.
type Scrubber interface {
	Text(s string) string
	// Diff is Text for a canonical diff, which stays readable as one.
	Diff(diff []byte) []byte
	// JSON is Text for every string and key of a document, and returns canonical
	// JSON. typed strings are left alone: key is the name of the nearest member, and
	// "" for the name of a member itself.
	JSON(doc []byte, typed func(key, value string) bool) ([]byte, error)
}

// scrubbed is an event's payload without secrets.
func scrubbed(scrub Scrubber, p ledger.Payload) (ledger.Payload, error) {
	raw, clean, err := Scrub(scrub, p)
	if err != nil || bytes.Equal(clean, raw) {
		return p, err
	}
	return ledger.Event{Type: p.Type(), Payload: clean}.Decode()
}

// Scrub returns a document of a record as canonical JSON, as it was given and without secrets. Its ids and hashes stay
// (T48), and so does what its own types have as kind, schema, type or Actor, where that has the form of one: by these a
// further proposal is told from other artifacts, and whoever proposed is kept from approving, so a patch that holds
// one of them as if it were a password must not take it out (T10). The names of its types' members stay too, the words
// of ours that some of them have, times, and the hashes of files by path: a record without them could never be read
// again. Whatever else is there is text like any other.
func Scrub(scrub Scrubber, doc any) (raw, clean []byte, err error) {
	if raw, err = canon.Marshal(doc); err != nil {
		return nil, nil, err
	}
	if clean, err = scrub.JSON(raw, IsTyped); err != nil || bytes.Equal(clean, raw) {
		return raw, clean, err
	}
	stays := staying{}
	stays.in(reflect.ValueOf(doc))
	clean, err = scrub.JSON(raw, func(key, value string) bool { return IsTyped(key, value) || stays[[2]string{key, value}] })
	return raw, clean, err
}

// staying are members, each a name and a value, that a Scrubber leaves alone.
type staying map[[2]string]bool

// in adds those of a value. What a map has is foreign, but for hashes.
func (s staying) in(v reflect.Value) {
	switch v.Kind() {
	case reflect.Map:
		hashes, _ := reflect.TypeAssert[map[string]*string](v)
		for file, sum := range hashes {
			if sum != nil && canon.IsSum(*sum) {
				s[[2]string{file, *sum}] = true
			}
		}
	case reflect.Pointer, reflect.Interface:
		s.in(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			s.in(v.Index(i))
		}
	case reflect.Struct:
		who, _ := reflect.TypeAssert[ledger.Actor](v)
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			field := v.Field(i)
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			s[[2]string{"", name}] = true
			stays := false
			switch {
			case field.Kind() != reflect.String:
				s.in(field)
			case name == "kind", name == "schema", name == "type":
				stays = ownWord().MatchString(field.String())
			case name == "status", name == "from", name == "to":
				stays = ownStatuses[field.String()]
			case name == "source":
				stays = slices.Contains(ledger.RequestSources, field.String())
			case strings.HasSuffix(name, "_at"):
				stays = isMoment(field.String())
			case name == "content_type":
				stays = field.String() == contentType
			case name == "id":
				stays = accountID().MatchString(who.ID) || strings.HasPrefix(who.ID, "local:")
			case name == "login": // a local one is a name that anybody types
				stays = accountID().MatchString(who.ID) && accountName().MatchString(who.Login)
			}
			if stays {
				s[[2]string{name, field.String()}] = true
			}
		}
	}
}

// ownStatuses are those of transactions, items and steps.
var ownStatuses = map[string]bool{
	string(ledger.Created): true, string(ledger.InProgress): true, string(ledger.Proposed): true, string(ledger.Awaiting): true, string(ledger.Applied): true, string(ledger.Completed): true,
	string(ledger.Failed): true, string(ledger.Interrupted): true, string(ledger.Denied): true, string(ledger.Superseded): true,
	ledger.ItemInProgress: true, ledger.ItemCancelled: true, ledger.StepPending: true, ledger.StepSkipped: true,
}

var (
	ownWord     = canon.Regexp(`^[A-Za-z0-9_./-]{1,60}$`)
	accountID   = canon.Regexp(`^[0-9]{1,20}$`)
	accountName = canon.Regexp(`^[A-Za-z0-9._-]{1,100}(\[bot\])?$`)
)

// forms are the members whose values this program makes: ids and hashes, which
// are no secrets however random they look. A value that has not the form is
// text like any other.
var forms = map[string]func(string) bool{
	"stored_sha256": canon.IsSum, "policy_sha256": canon.IsSum, "body_sha256": canon.IsSum, "sha256": canon.IsSum, "input_sha256": canon.IsSum,
	"patch_redacted_sha256": canon.IsSum, "patch_sealed_sha256": canon.IsSum, "before_hash": canon.IsSum, "after_hash": canon.IsSum,
	"source_proposal_hash": canon.IsSum, "proposal_hash": canon.IsSum, "base_sha256": canon.IsSum, "after_sha256": canon.IsSum,

	"base_commit": canon.IsGitID, "policy_commit": canon.IsGitID, "commit": canon.IsGitID, "commit_before": canon.IsGitID, "commit_after": canon.IsGitID,
	"tree": canon.IsGitID, "ledger_commit": canon.IsGitID, "applied_commit": canon.IsGitID, "head_commit": canon.IsGitID, "merge_commit": canon.IsGitID,

	"patch_id": canon.IsHex64, "patchId": canon.IsHex64, "patch_ids": canon.IsHex64, "artifact_id": canon.IsHex64,
	"fingerprint": isFingerprint, "patch_fingerprint": isFingerprint,
	"statement": ledger.IsArtifactFile, "signature": ledger.IsArtifactFile, "key": ledger.IsArtifactFile, "key_fingerprint": isKeyFingerprint, "armored": isArmored,
	"shown": canon.IsSum, "fingerprints": isFingerprint,
	"path": ledger.IsArtifactFile, "apply_artifact": ledger.IsArtifactFile, "checks": ledger.IsArtifactFile, "trace": ledger.IsArtifactFile, "evidence": ledger.IsArtifactFile, "findings": ledger.IsArtifactFile,
	"proposal_id": isProposal, "source_proposal_id": isProposal,
	"transaction_id": isID, "supersedes": isID,
}

// DiffKey and DiffBytesKey are the members of a document that hold a whole diff.
const (
	DiffKey      = "diff"
	DiffBytesKey = "diff_base64"
)

// IsTyped reports whether a value stands where ids and hashes do, and is one: such
// a string is never taken for a secret (T48).
func IsTyped(key, value string) bool {
	form, ok := forms[key]
	return ok && form(value)
}

func isID(s string) bool { return ledger.CheckID(s) == nil }

func isFingerprint(s string) bool {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "secret:"), "protected:")
	digits, ok := strings.CutPrefix(s, "patchset:")
	return ok && canon.IsHex64(digits)
}

// isMoment reports whether s is a time as this program, or a forge, writes one.
func isMoment(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil && len(s) <= len("2006-01-02T15:04:05.999999999-07:00")
}

// isKeyFingerprint reports whether s names an SSH key, as ssh-keygen -l does.
func isKeyFingerprint(s string) bool {
	digits, ok := strings.CutPrefix(s, "SHA256:")
	sum, err := base64.RawStdEncoding.Strict().DecodeString(digits)
	return ok && err == nil && len(sum) == 32
}

// isArmored reports whether s is the text of an SSH signature.
func isArmored(s string) bool {
	s, begins := strings.CutPrefix(s, "-----BEGIN SSH SIGNATURE-----\n")
	s, ends := strings.CutSuffix(s, "\n-----END SSH SIGNATURE-----\n")
	blob, err := base64.StdEncoding.Strict().DecodeString(s) // which passes over newlines
	return begins && ends && err == nil && bytes.HasPrefix(blob, []byte("SSHSIG"))
}

func isProposal(s string) bool {
	digits, ok := strings.CutPrefix(s, "prop_")
	return ok && canon.IsHex(digits, 16)
}

// maxOutput is how many bytes of an output an item holds.
const maxOutput = 4 << 10

// Beginning is what an item shows of an output, which an artifact has whole.
func Beginning(output string) string {
	if len(output) <= maxOutput {
		return output
	}
	return strings.ToValidUTF8(output[:maxOutput], "") + "\n… cut here; the artifact has more\n"
}

// EscapeBytes writes each byte that is not UTF-8 as an escape, such as \xe9, and
// leaves everything else as it is: JSON has no other way to show that there is
// one (T71).
func EscapeBytes(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// AuthorIf returns an author, or nil where its time is more than a day after now, or its text
// is not what clean leaves of it: a secret is no name, and a commit cannot have half of one.
func AuthorIf(a *ledger.Author, now time.Time, clean func(string) string) *ledger.Author {
	if a == nil || clean(a.Name) != a.Name || clean(a.Email) != a.Email {
		return nil
	}
	if at, err := time.Parse(time.RFC3339, a.Date); err != nil || at.After(now.Add(24*time.Hour)) {
		return nil
	}
	return a
}
