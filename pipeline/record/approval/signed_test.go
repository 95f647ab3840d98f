package approval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// signedBy is a decision on the patch that ada signed.
func signedBy(decision ledger.Decision, reason string, fingerprints ...string) approval.Signature {
	return teststand.Ed25519(1).Signs(approval.SignedDecision{
		Schema: approval.DecisionSchema, Repository: &ledger.Repository{ID: "100", Name: "acme/site"}, PullRequest: 7,
		TransactionID: "tx_01KE5W5200041061050R3GG28A", BaseCommit: strings.Repeat("b", 40), Decision: decision, Fingerprints: fingerprints,
		Reason: reason, DecidedAt: "2026-01-05T11:00:00Z", Shown: "sha256:" + strings.Repeat("c", 64),
		Proposers: []ledger.Actor{{Kind: "bot", ID: "41898282", Login: "github-actions[bot]"}}, RequestedBy: []ledger.Requester{},
		Policy: ledger.PolicyRef{Commit: strings.Repeat("d", 40), SHA256: "sha256:" + strings.Repeat("e", 64)},
	})
}

// TestT07SignedCommand: a signed command is its one line and nothing else; a denial is
// one also without its signature.
func TestT07SignedCommand(t *testing.T) {
	approve, deny := signedBy(ledger.Approve, "read it", own), signedBy(ledger.Deny, "no", own)
	both := signedBy(ledger.Approve, "", own, "protected:"+own)
	glass := signedBy(approval.BreakGlass, "down", own)
	want := approval.Command{Verb: "approve", Signed: true, Fingerprint: own, Reason: "read it"}
	for body, want := range map[string][]approval.Command{
		approval.SignedLine(approve):          {want},
		approval.SignedLine(approve) + "\n":   {want},
		approval.SignedLine(approve) + "\r\n": {want},
		approval.SignedLine(deny):             {{Verb: "deny", Signed: true, Fingerprint: own, Reason: "no"}},
		approval.SignedLine(both):             {{Verb: "approve", Signed: true, Fingerprint: own}, {Verb: "approve", Signed: true, Fingerprint: "protected:" + own}},
		approval.SignedLine(glass):            {{Verb: "approve", Signed: true, BreakGlass: true, Fingerprint: own, Reason: "down"}},
	} {
		signature, got, err := approval.ParseSigned(body)
		if err != nil || !slices.Equal(got, want) || approval.SignedLine(signature) != strings.TrimRight(body, "\r\n") {
			t.Errorf("%.60q: %+v, %v", body, got, err)
		}
		if first, ok := approval.ParseCommand(body); !ok || first != want[0] {
			t.Errorf("%.60q: %+v", body, first)
		}
		if said := talk(comment(body)).Said(); len(said) != len(want) || said[0].Void != "" || said[0].Command != want[0] {
			t.Errorf("%.60q says %+v", body, said)
		}
	}
	line, text := approval.SignedLine(approve), approve.String()
	for body, why := range map[string]string{
		line + " ":                          "not base64url",
		line + "\nfine":                     "must be all of the comment",
		line + "\n\n":                       "must be all of the comment",
		line + "\n" + line:                  "must be all of the comment",
		line + "A":                          "the signature",
		line[:len(line)-4]:                  "the signature",
		"/approve  " + own + " sig:" + text: "does not say what was signed",
		"/approve " + own + " " + own + " sig:" + text:           "does not say what was signed",
		"/approve secret:" + own + " sig:" + text:                "does not say what was signed",
		"/approve sig:" + text:                                   "does not say what was signed",
		"/approve --break-glass " + own + " sig:" + text:         "does not say what was signed",
		"/approve " + own + " sig:" + deny.String():              "does not say what was signed",
		"/approve " + own + " sig:" + both.String():              "does not say what was signed",
		"/approve " + own + " sig:" + glass.String():             "does not say what was signed",
		"/approve --break-glass " + own + " sig:" + "down":       "the signature",
		"/approve " + own + " sig:":                              "the signature",
		"/approve " + own + " sig:" + strings.Repeat("A", 1<<15): "too long",
		"/Approve " + own + " sig:" + text:                       "does not say what was signed",
	} {
		if c, ok := approval.ParseCommand(body); ok {
			t.Errorf("%.90q is taken for %+v", body, c)
		}
		said := talk(comment(body)).Said()
		if len(said) != 1 || !strings.HasPrefix(said[0].Void, "is not an exact signed command: ") || !strings.Contains(said[0].Void, why) {
			t.Errorf("%.90q says %+v, want %q", body, said, why)
		}
	}
	for _, body := range []string{approval.SignedLine(deny) + "A", approval.SignedLine(deny) + "\nno", "/deny " + own + " sig:"} {
		if c, ok := approval.ParseCommand(body); !ok || c.Verb != "deny" || c.Signed || c.Fingerprint != own {
			t.Errorf("%.90q: %+v", body, c)
		}
		if said := talk(comment(body)).Said(); len(said) != 1 || said[0].Void != "" {
			t.Errorf("%.90q says %+v", body, said)
		}
	}
}

// TestT07SignedBlock: a signature may stand below the command as one fenced block, to the
// byte and with nothing else; what only looks like it is no approval at all.
func TestT07SignedBlock(t *testing.T) {
	approve, deny := signedBy(ledger.Approve, "read ``` it -->", own), signedBy(ledger.Deny, "no", own)
	both, glass := signedBy(ledger.Approve, "", own, "protected:"+own), signedBy(approval.BreakGlass, "down", own)
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	for body, want := range map[string]approval.Signature{
		forge.SignedBlock(approve):              approve,
		forge.SignedBlock(approve) + "\n":       approve,
		crlf(forge.SignedBlock(approve)):        approve,
		crlf(forge.SignedBlock(approve) + "\n"): approve,
		forge.SignedBlock(deny):                 deny,
		crlf(forge.SignedBlock(both)):           both,
		forge.SignedBlock(glass):                glass,
	} {
		_, asLine, err := approval.ParseSigned(approval.SignedLine(want))
		fatal(t, err)
		signature, got, err := approval.ParseSigned(body)
		if err != nil || signature.String() != want.String() || !slices.Equal(got, asLine) {
			t.Errorf("%.90q: %+v, %v", body, got, err)
		}
		if said := talk(comment(body)).Said(); len(said) != len(asLine) || said[0].Void != "" || said[0].Command != asLine[0] {
			t.Errorf("%.90q says %+v", body, said)
		}
	}

	good := forge.SignedBlock(approve)
	line, block, _ := strings.Cut(good, "\n")
	_, denied, _ := strings.Cut(forge.SignedBlock(deny), "\n")
	_, broken, _ := strings.Cut(forge.SignedBlock(glass), "\n")
	statement, denial := string(approve.Statement.Bytes()), string(deny.Statement.Bytes())
	for name, body := range map[string]string{
		"two fences":                    good + "\n" + block,
		"two commands":                  good + "\n" + good,
		"a fence after it":              good + "\n```\n```",
		"a text after it":               good + "\nfine",
		"a space after it":              good + " ",
		"a blank line after it":         good + "\n\n",
		"a blank line before it":        line + "\n\n" + block,
		"a text before it":              line + "\nas follows\n" + block,
		"words after the command":       line + " fine\n" + block,
		"a space after the command":     line + " \n" + block,
		"a reason":                      line + " read it\n" + block,
		"the fence of a denial":         line + "\n" + denied,
		"the fence of a broken glass":   line + "\n" + broken,
		"a glass that nobody broke":     strings.Replace(good, "/approve ", "/approve --break-glass ", 1),
		"a glass, and a reason":         strings.Replace(line, "/approve ", "/approve --break-glass ", 1) + " down\n" + block,
		"no fingerprint":                "/approve\n" + block,
		"another kind":                  strings.Replace(good, "/approve ", "/approve secret:", 1),
		"a kind more":                   strings.Replace(good, "/approve ", "/approve protected:"+own+" ", 1),
		"a fence of more kinds":         line + "\n" + strings.SplitN(forge.SignedBlock(both), "\n", 2)[1],
		"a statement of another":        strings.Replace(good, statement, denial, 1),
		"two statements":                strings.Replace(good, statement, statement+statement, 1),
		"no statement":                  strings.Replace(good, statement, "", 1),
		"no signature":                  strings.Replace(good, approve.Armored, "", 1),
		"two signatures":                strings.Replace(good, approve.Armored, approve.Armored+approve.Armored, 1),
		"the other order":               strings.Replace(strings.Replace(good, approve.Armored, "", 1), statement, statement+approve.Armored, 1),
		"a nested fence":                strings.Replace(good, statement, "```\n"+statement, 1),
		"a fence in the signature":      strings.Replace(good, "-----END", "```\n-----END", 1),
		"a fence of tildes":             strings.ReplaceAll(good, "```", "~~~"),
		"a longer fence":                strings.Replace(strings.TrimSuffix(good, "```"), "```", "````", 1) + "````",
		"a fence that does not close":   strings.TrimSuffix(good, "```"),
		"a fence that closes longer":    good + "`",
		"no name of the fence":          strings.Replace(good, "```countersign-decision", "```", 1),
		"another name":                  strings.Replace(good, "countersign-decision\n", "countersign-decision x\n", 1),
		"no fence":                      line + "\n" + approve.Armored + statement,
		"indented":                      line + "\n" + strings.ReplaceAll(block, "\n", "\n    "),
		"quoted below":                  line + "\n> " + strings.ReplaceAll(block, "\n", "\n> "),
		"in an HTML comment":            line + "\n<!--\n" + block + "\n-->",
		"an HTML comment after it":      good + "\n<!-- -->",
		"bare CR":                       strings.ReplaceAll(good, "\n", "\r"),
		"line ends of both sorts":       strings.Replace(crlf(good), "\r\n", "\n", 1),
		"line ends of both sorts, too":  strings.Replace(good, "\n", "\r\n", 1),
		"CR CR LF":                      strings.ReplaceAll(good, "\n", "\r\r\n"),
		"a CR at the end":               good + "\r",
		"lines of another length":       strings.Replace(good, "-----BEGIN SSH SIGNATURE-----\n", "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n", 1),
		"one long line":                 strings.Replace(good, approve.Armored, "-----BEGIN SSH SIGNATURE-----\n"+strings.ReplaceAll(approve.Armored[30:len(approve.Armored)-29], "\n", "")+"\n-----END SSH SIGNATURE-----\n", 1),
		"not base64":                    strings.Replace(good, "U1NIU0lH", "U1NI U0l", 1),
		"an empty signature":            strings.Replace(good, approve.Armored, "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\nx", 1),
		"a statement written otherwise": strings.Replace(good, `"base_commit":`, `"base_commit": `, 1),
		"a member twice":                strings.Replace(good, `{"base_commit"`, `{"schema":"countersign/decision/2","base_commit"`, 1),
		"a member more":                 strings.Replace(good, `{"base_commit"`, `{"a":1,"base_commit"`, 1),
		"both forms":                    approval.SignedLine(approve) + "\n" + block,
		"both forms, of two":            approval.SignedLine(approve) + "\n" + denied,
		"too long":                      strings.Replace(good, "U1NIU0lH", strings.Repeat("U1NIU0lH", 1<<12), 1),
		"a character that is not seen":  strings.Replace(good, "```c", "\u200b```c", 1),
		"other letters":                 strings.Replace(good, "/approve", "/Approve", 1),
		"quoted":                        "> " + strings.ReplaceAll(good, "\n", "\n> "),
		"in a list":                     "- " + strings.ReplaceAll(good, "\n", "\n  "),
		"a byte order mark":             "\ufeff" + good,
	} {
		if body == good {
			t.Fatalf("%s changes nothing", name)
		}
		if c, ok := approval.ParseCommand(body); ok {
			t.Errorf("%s: is taken for %+v", name, c)
		}
		said := talk(comment(body)).Said()
		if len(said) != 1 || !strings.HasPrefix(said[0].Void, "is not an exact signed command: ") {
			t.Errorf("%s: says %+v", name, said)
		}
	}
	for name, body := range map[string]string{
		"all of it in an HTML comment": "<!--\n" + good + "\n-->",
		"all of it in a fence":         "````\n" + good + "\n````",
		"all of it below a text":       "I read it\n" + good,
	} {
		if said := talk(comment(body)).Said(); len(said) != 1 || said[0].Void != "its command is not the first line" {
			t.Errorf("%s: says %+v", name, said)
		}
	}
	edited := comment(good)
	edited.Edited = true
	changed := comment(good)
	changed.Earlier = []string{line + "\nnot yet"}
	for _, s := range []approval.Statement{edited, changed} {
		if said := talk(s).Said(); len(said) != 1 || said[0].Void != "edited after posting" {
			t.Errorf("edited: %+v", said)
		}
	}
	// A denial with a block that is none is a denial all the same.
	for _, body := range []string{forge.SignedBlock(deny) + "\n\n", "/deny " + own + "\n" + block, "/deny " + own + "\n```countersign-decision"} {
		if said := talk(comment(body)).Said(); len(said) != 1 || said[0].Void != "" || said[0].Command.Verb != "deny" || said[0].Command.Signed {
			t.Errorf("%.90q says %+v", body, said)
		}
	}
}

// TestT72Signed: where the Policy asks for signatures, nothing else counts, by whoever's
// account it is; a signature that is no good never counts.
func TestT72Signed(t *testing.T) {
	const (
		require = "approvals: {keys: k, signed: require, break_glass: [ada]}"
		unmet   = "0 of 1 signed approvals"
		met     = "1 of 1 signed approvals"
	)
	headOf := func(commit string) func(*approval.Case) {
		return func(c *approval.Case) {
			if err := c.Log.Append(noon, &ledger.TurnItem{TransactionID: c.Log.Meta().TransactionID, TurnID: "turn_1", Item: ledger.Item{
				ID: "item_1", Type: "fileChange", Metadata: &ledger.Proposal{PatchID: thePatch, PullRequest: 7, HeadCommit: commit},
			}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	judgeAll(t, []situation{
		{"signed", require, "a", "ada sign=k", approved, met, "+approved", nil},
		{"not signed", require, "a", "ada", pending, unmet, "-is not signed, which the Policy asks for: countersign sign --pr 7", headOf("head")},
		{"locally, not signed", require, "a", "ada local", pending, unmet,
			"-is not signed, which the Policy asks for: countersign approve tx_01KE5W5200041061050R3GG28A --sign", alone},
		{"locally, signed", require, "a", "ada local sign=k", approved, met, "+approved", alone},
		{"a green review", require, "a", "ada source=review", pending, unmet, "-is not signed", nil},
		{"a break-glass", require, "a", "ada glass=down", pending, unmet, "-is not signed", nil},
		{"a break-glass with a key", require, "a", "ada glass=down sign=k", approved, "break-glass by ada: down", "+by breaking the glass", nil},
		{"a break-glass with a bad one", require, "a", "ada glass=down sign=bad", pending, unmet, "-its signature does not count: it was signed for another patch", nil},
		{"a denial needs none", require, "a", "ada sign=k; bob deny", denied, "denied by bob", "+approved; +denied", nil},
		{"bad", require, "a", "ada sign=bad", pending, unmet, "-its signature does not count: it was signed for another patch", nil},
		{"bad, where none is asked for", "approvals: {keys: k}", "a", "ada sign=bad", pending, none, "-its signature does not count", nil},
		{"good, where none is asked for", "approvals: {keys: k}", "a", "ada sign=k", approved, one, "+approved", nil},
		{"not signed, where none is asked for", "approvals: {keys: k}", "a", "ada", approved, one, "+approved", nil},
		{"where none is taken", "approvals: {keys: k, signed: off}", "a", "ada sign=k", pending, none, "-the Policy takes none", nil},
		{"where there are no keys", "", "a", "ada sign=k", pending, none, "-the Policy takes none", nil},
		{"where nobody can verify it", require, "a", "ada sign=k", pending, unmet, "-it was not verified", func(c *approval.Case) { c.Signed = nil }},
		{"a bot's key", require, "a", "app sign=k", pending, unmet, "-not a human account", nil},
		{"an account listed under bots", "{bots: [ada], approvals: {keys: k, signed: require}}", "a", "ada sign=k", pending, unmet, "-under bots", nil},
		{"the proposer's key", require, "a", "agent sign=k", pending, unmet, "-not a human account", nil},
		{"the proposer's other address, in a clone", "approvals: {keys: k, signed: require}", "a", "", approved, met, "+approved", func(c *approval.Case) {
			alone(c)
			c.Log = record(t, ledger.Actor{Kind: "user", ID: "local:ada@work.example", Login: "Ada"}, spoken(t, "home local sign=k"))
			c.People = func(...string) []string { return []string{"ada@home.example", "ada@work.example", "ada"} }
		}},
		{"the proposer's other address, and their account", "approvals: {keys: k, signed: require}", "a", "", pending, unmet, "-its author is the proposer", func(c *approval.Case) {
			c.Log = record(t, ledger.Actor{Kind: "user", ID: "local:ada@work.example", Login: "Ada"}, spoken(t, "ada sign=k"))
			c.People = func(...string) []string { return []string{"ada@home.example", "ada@work.example", "ada"} }
		}},
		{"a human proposer's key", require, "a", "", pending, unmet, "-its author is the proposer", func(c *approval.Case) {
			c.Log = record(t, people["ada"], spoken(t, "ada sign=k"))
		}},
		{"T12 one key of two accounts", "approvals: {keys: k, required: 2}", "a", "ada sign=k; bob sign=k", pending, "1 of 2 approvals", "+approved; -its key's vote is counted already", nil},
		{"T12 two keys of one account", "approvals: {keys: k, required: 2}", "a", "ada sign=k; ada sign=l", pending, "1 of 2 approvals", "+approved; -this person's vote", nil},
		{"two keys of two accounts", "approvals: {keys: k, required: 2, signed: require}", "a", "ada sign=k; bob sign=l", approved, "2 of 2 signed approvals", "+approved; +approved", nil},
		{"of a protected path alone", "protected: [{paths: [a], signed: require}]", "a", "ada; ada protected", pending, "1 of 1 approvals; protected_path: 0 of 1 signed",
			"+approved; -is not signed", nil},
		{"of a protected path, signed", "{approvals: {keys: k}, protected: [{paths: [a], signed: require}]}", "a", "ada; bob protected sign=k", approved,
			"1 of 1 approvals; protected_path: 1 of 1 signed", "+approved; +approved", nil},
		{"of a protected path, in an emergency", "{approvals: {break_glass: [ada]}, protected: [{paths: [a], signed: require}]}", "a", "ada glass=down", pending,
			"0 of 1 approvals; protected_path: 0 of 1 signed", "-is not signed", nil},
		{"of a secret alone", "secrets: {signed: require}", "!a", "ada; ada secret", pending, "1 of 1 approvals; secrets_override: 0 of 1 signed", "+approved; -is not signed", nil},

		// It is as old as its statement, and of the commit that was reviewed, whenever it is posted.
		{"posted again, too old", "approvals: {keys: k, max_age: 90m}", "a", "ada sign=k at=1h", pending, none, "-expired", nil},
		{"not too old", "approvals: {keys: k, max_age: 3h}", "a", "ada sign=k at=1h", approved, one, "+approved", nil},
		{"posted before it was made", "approvals: {keys: k, max_age: 150m}", "a", "ada sign=k at=3h", pending, none, "-expired", nil},
		{"posted again when the base has moved", "approvals: {keys: k, drift: {commits: 11}}", "a", "ada sign=k on=new", pending, none, "-so propose the change anew", func(c *approval.Case) {
			headOf("head")(c)
			c.Drift = moved
		}},
		{"where it was reviewed", "approvals: {keys: k, drift: {commits: 11}}", "a", "ada sign=k on=head", approved, one, "+approved", func(c *approval.Case) {
			headOf("new")(c)
			c.Drift = moved
		}},
		{"posted again on another head", "approvals: {keys: k, same_head: true}", "a", "ada sign=k on=head", pending, none, "-another commit", headOf("old")},
		{"on the head that was reviewed", "approvals: {keys: k, same_head: true}", "a", "ada sign=k on=head", approved, one, "+approved", headOf("head")},
	})
}
