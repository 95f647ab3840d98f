package evidence_test

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// disposed is a ledger with a transaction that says what became of an exception.
func disposed(t *testing.T, files fstest.MapFS, mail, about string, key *teststand.Signer, change func(*observation.Disposition)) fstest.MapFS {
	t.Helper()
	meta := by(observedID, mail)
	d := &observation.Disposition{About: about, As: observation.Accepted, Reason: "it is right"}
	d.Head = observation.Head{Schema: observation.Schema(d), TransactionID: meta.TransactionID, Author: meta.Proposer}
	if change != nil {
		change(d)
	}
	if d.Comment != nil {
		meta.TransactionID, meta.Proposer = d.TransactionID, d.Author
	}
	if key != nil {
		d.Signature = &observation.Signed{Armored: key.Sign(observation.DispositionNamespace, d.Statement()), Line: mail + " " + key.Public}
	}
	return observed(t, files, meta, d)
}

const observedID = "tx_01KEZZZZZZ0000000000000000"

// by begins the transaction of an observation.
func by(id, mail string) *ledger.Meta {
	return &ledger.Meta{
		TransactionID: id, Proposer: ledger.Actor{Kind: "user", ID: "local:" + mail, Login: mail}, WorkspaceRoots: []string{},
		SandboxPolicy: ledger.SandboxPolicy{WritableRoots: []string{}},
	}
}

// said has a disposition be that of a comment by an account of this login, who may do so much.
func said(t *testing.T, login, permission string) func(*observation.Disposition) {
	return func(d *observation.Disposition) {
		read, err := observation.Comment{Access: approval.Access{Permission: permission, Role: permission}, Statement: approval.Statement{
			Kind: approval.KindIssueComment, ID: "4711", URL: "https://forge.example/1#4711", Author: ledger.Actor{Kind: "user", ID: "7", Login: login},
			Body: "/dispose " + d.About + " accepted\n" + d.Reason, CreatedAt: "2026-01-05T12:00:00Z",
		}}.Disposition()
		check(t, err)
		*d = *read
	}
}

// observed is a ledger with a transaction that has an observation.
func observed(t *testing.T, files fstest.MapFS, meta *ledger.Meta, o observation.Observation) fstest.MapFS {
	t.Helper()
	files, id := maps.Clone(files), meta.TransactionID
	put := func(name string, data []byte) {
		files[path.Join(ledger.Dir(id), name)] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	line := func(doc any) []byte {
		raw, err := canon.Line(doc)
		check(t, err)
		return raw
	}
	raw := line(o)
	var log ledger.Log
	for _, e := range []ledger.Payload{
		meta,
		&ledger.StatusChange{TransactionID: id, From: ledger.Created, To: ledger.InProgress},
		&ledger.ArtifactStored{TransactionID: id, ArtifactID: canon.Hex(raw), Kind: o.Kind(), Path: ledger.ArtifactFile(canon.Hex(raw)), ContentType: "application/json", StoredSHA256: canon.Sum(raw)},
		&ledger.StatusChange{TransactionID: id, From: ledger.InProgress, To: ledger.Interrupted},
		&ledger.Close{TransactionID: id, Status: ledger.Interrupted},
	} {
		check(t, log.Append(now.Add(-time.Hour), e))
	}
	put(ledger.ArtifactFile(canon.Hex(raw)), raw)
	put(ledger.EventsFile, log.Bytes())
	put(ledger.TransactionFile, line(log.Transaction()))
	return files
}

// TestReviews: an exception is due for review by somebody who had no part in it. What does not count is shown, and says
// why; what does not hold is as if it were not there.
func TestReviews(t *testing.T) {
	whole, ids := storetest.Recorded(t, storetest.Whole)
	pushed, key, other := strings.Repeat("e", 40), teststand.Ed25519(1), teststand.Ed25519(2)
	list, err := sshsig.ParseAllowedSigners([]byte("bob@example.org " + key.Public + "\nfay@example.org,eve@example.org " + other.Public))
	check(t, err)
	for name, c := range map[string]struct {
		mail, about, policy string
		by                  *teststand.Signer
		change              func(*observation.Disposition)
		shown               bool
		why                 string // it does not count
	}{
		"nobody":                         {},
		"somebody":                       {mail: "bob@example.org", about: pushed, shown: true},
		"signed":                         {mail: "bob@example.org", about: pushed, by: &key, shown: true},
		"signed, as the Policy asks":     {mail: "bob@example.org", about: pushed, by: &key, policy: "approvals: {keys: k, signed: require}", shown: true},
		"not signed, as the Policy asks": {mail: "bob@example.org", about: pushed, policy: "approvals: {keys: k, signed: require}", shown: true, why: "it is not signed"},
		"a shell where none counts":      {mail: "bob@example.org", about: pushed, policy: "approvals: {local: false}", shown: true, why: "a shell alone"},
		"a comment":                      {mail: "bob", about: pushed, policy: "approvals: {local: false}", change: said(t, "bob", "write"), shown: true},
		"a comment by who may only read": {mail: "bob", about: pushed, change: said(t, "bob", "read"), shown: true, why: "its author has read permission, write needed"},
		"a comment, where admins decide": {mail: "bob", about: pushed, policy: "approvals: {permission: admin}", change: said(t, "bob", "write"), shown: true, why: "its author has write permission, admin needed"},
		"a comment, not signed":          {mail: "bob", about: pushed, policy: "approvals: {keys: k, signed: require}", change: said(t, "bob", "admin"), shown: true, why: "it is not signed"},
		"a comment by a listed bot":      {mail: "bob", about: pushed, policy: "bots: [bob]", change: said(t, "bob", "write"), shown: true, why: "under bots"},
		"a listed bot":                   {mail: "bob@example.org", about: pushed, policy: "bots: [\"local:bob@example.org\"]", shown: true, why: "under bots"},
		"a comment by its author":        {mail: "mallory", about: pushed, change: said(t, "mallory", "write"), shown: true, why: "its author or committer"},
		"a comment that says otherwise":  {mail: "bob", about: pushed, change: func(d *observation.Disposition) { said(t, "bob", "write")(d); d.As = observation.Fixed }},
		"a comment elsewhere":            {mail: "bob", about: pushed, change: func(d *observation.Disposition) { said(t, "bob", "write")(d); d.TransactionID = observedID }},
		"its author":                     {mail: "mallory@example.org", about: pushed, shown: true, why: "its author or committer"},
		"who wrote it together":          {mail: "carol@example.org", about: pushed, shown: true, why: "its author or committer"},
		"a name of its author":           {mail: "fay@example.org", about: pushed, by: &other, shown: true, why: "its author or committer"},
		"about another commit":           {mail: "bob@example.org", about: strings.Repeat("d", 40)},
		"about a transaction of no part": {mail: "bob@example.org", about: ids[0]},
		"a signature of something else":  {mail: "bob@example.org", about: pushed, by: &key, change: func(d *observation.Disposition) { d.TransactionID = ids[0] }},
		"by somebody else than it says":  {mail: "bob@example.org", about: pushed, change: func(d *observation.Disposition) { d.Author.ID = "local:dan@example.org" }},
		"an outcome that is not known":   {mail: "bob@example.org", about: pushed, change: func(d *observation.Disposition) { d.As = "ignored" }},
	} {
		t.Run(name, func(t *testing.T) {
			files := whole
			if c.mail != "" {
				files = disposed(t, whole, c.mail, c.about, c.by, c.change)
			}
			s := source(t, files, applied(t, whole, ids[0]))
			rules, err := policy.Parse("p", []byte(cmp.Or(c.policy, "version: 1")))
			check(t, err)
			rules.Exceptions.Review = policy.Duration(24 * time.Hour)
			s.Policy, s.Keys = rules, approval.Keys{Allowed: list, Listed: list}
			s.RawCommit = func(commit string) ([]byte, error) {
				if commit != pushed && c.about == pushed {
					t.Errorf("commit %s was read", commit)
				}
				return []byte("tree x\nauthor Mallory <mallory@example.org> 0 +0000\ncommitter Eve <eve@example.org> 0 +0000\n\npushed\n\nCo-authored-by: Carol <carol@example.org>\n"), nil
			}
			rows := report(t, s, "2026-01-05", "2026-02-10").Rows
			row := rows[slices.IndexFunc(rows, func(r evidence.Row) bool { return r.Commit == pushed })]
			counts := c.shown && c.why == ""
			if row.Open() == counts || row.Reviewed != counts {
				t.Errorf("open: %v, reviewed: %v", row.Open(), row.Reviewed)
			}
			if row.Of(evidence.Overdue) == counts || row.DueBy == "" || (len(row.Reviews) == 1) != c.shown {
				t.Fatalf("%+v", row)
			}
			if !c.shown {
				return
			}
			if got := row.Reviews[0]; got.Counted != counts || !strings.Contains(got.Why, c.why) || (got.KeyFingerprint != "") != (c.by != nil) {
				t.Errorf("%+v", got)
			}
			if !strings.Contains(row.Exceptions[0].Text, "; reviewed by "+c.mail+": accepted (it is right)") {
				t.Errorf("%+v", row.Exceptions)
			}
		})
	}
}

// TestOpen: nobody's word settles what is no change, or whose record does not verify.
func TestOpen(t *testing.T) {
	for name, c := range map[string]struct {
		row  evidence.Row
		open bool
	}{
		"no exception":       {evidence.Row{Commit: "c"}, false},
		"reviewed":           {evidence.Row{Commit: "c", Reviewed: true, Exceptions: []evidence.Exception{{Code: evidence.ChecksFailed}}}, false},
		"not reviewed":       {evidence.Row{Commit: "c", Exceptions: []evidence.Exception{{Code: evidence.ChecksFailed}}}, true},
		"an invalid record":  {evidence.Row{Commit: "c", Reviewed: true, Exceptions: []evidence.Exception{{Code: evidence.BreakGlass}, {Code: evidence.RecordInvalid}}}, true},
		"a whole repository": {evidence.Row{Reviewed: true, Exceptions: []evidence.Exception{{Code: evidence.Unsound}}}, true},
	} {
		if got := c.row.Open(); got != c.open {
			t.Errorf("%s: %v", name, got)
		}
	}
}
