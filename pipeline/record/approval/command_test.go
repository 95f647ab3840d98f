package approval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

var (
	own   = "patchset:" + thePatch
	exact = []struct {
		body string
		want approval.Command
	}{
		{"/approve " + own, approval.Command{Verb: "approve", Fingerprint: own}},
		{"/approve secret:" + own, approval.Command{Verb: "approve", Fingerprint: "secret:" + own}},
		{"/approve protected:" + own, approval.Command{Verb: "approve", Fingerprint: "protected:" + own}},
		{"/approve " + own + "\r\nthanks, all of you", approval.Command{Verb: "approve", Fingerprint: own}},
		{"/approve " + own + "\n", approval.Command{Verb: "approve", Fingerprint: own}},
		{"/approve --break-glass " + own + " the site is down", approval.Command{Verb: "approve", BreakGlass: true, Fingerprint: own, Reason: "the site is down"}},
		{"/approve", approval.Command{Verb: "approve"}},
		{"/approve\nfine with me", approval.Command{Verb: "approve"}},
		{"/approve secret", approval.Command{Verb: "approve", Kind: "secrets_override"}},
		{"/approve protected\r\nread it", approval.Command{Verb: "approve", Kind: "protected_path"}},
		{"/deny", approval.Command{Verb: "deny"}},
		{"/deny ", approval.Command{Verb: "deny"}},
		{"/deny too risky", approval.Command{Verb: "deny", Reason: "too risky"}},
		{"/deny protected", approval.Command{Verb: "deny", Reason: "protected"}},
		{"/deny " + own, approval.Command{Verb: "deny", Fingerprint: own}},
		{"/deny " + own + " ", approval.Command{Verb: "deny", Fingerprint: own}},
		{"/deny secret:" + own + "  nö\u200b!  really\r\n", approval.Command{Verb: "deny", Fingerprint: "secret:" + own, Reason: "nö ! really"}},
		{"/deny  \t" + own + "\u00a0no", approval.Command{Verb: "deny", Fingerprint: own, Reason: "no"}},
		{"/deny patchset:abc", approval.Command{Verb: "deny", Reason: "patchset:abc"}},
	}
)

func TestParseCommand(t *testing.T) {
	for _, c := range exact {
		got, ok := approval.ParseCommand(c.body)
		if !ok || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.body, got, ok, c.want)
		}
		if !approval.LooksLike(c.body) {
			t.Errorf("%q does not look like a command", c.body)
		}
	}
}

// inexact are lines that are no command, by the threat that they are an example
// of, and whether they are told to their author.
var inexact = map[string]map[string]bool{
	"T07": {
		"/approve " + own[:len(own)-1]:                   true,
		"/approve " + own + "0":                          true,
		"/approve " + strings.ToUpper(own):               true,
		"/approve patchset:" + strings.ToUpper(thePatch): true,
		"/approve " + thePatch:                           true,
		"/approve " + own + " please":                    true,
		"/approve " + own + " ":                          true,
		"/approve " + own + "\r\r\n":                     true,
		"/approve " + own + "\t":                         true,
		"/approve " + own + ".":                          true,
		"/approve  " + own:                               true,
		"/approve\t" + own:                               true,
		"/approve ":                                      true,
		"/approve it":                                    true,
		"/approve! ":                                     true,
		"/Approve " + own:                                true,
		"/APPROVE":                                       true,
		"/approved":                                      true,
		"/approve break_glass:" + own:                    true,
		"/approve secret:secret:" + own:                  true,
		"/approve secret:protected:" + own:               true,
		"/approve --break-glass " + own:                  true,
		"/approve --break-glass " + own + " ":            true,
		"/approve --break-glass " + own + " \u200b":      true,
		"/approve --break-glass " + own + "  down":       true,
		"/approve --break-glass the site is down":        true,
		"/approve --breakglass " + own + " down":         true,
		"/approve " + own + " --break-glass":             true,
		"/withdraw-deny " + own + " I was wrong":         true,
		"/withdraw-deny I was wrong":                     false,
		" /approve " + own:                               true,
		"\n/approve " + own:                              false,
		"LGTM":                                           false,
		"":                                               false,
		"approve " + own:                                 true,
		"/denied":                                        false,
		"/approve " + own[:len("patchset:")+12]:          true,
		"/approve PATCHSET:" + thePatch:                  true,
		"/approve sha256:" + thePatch:                    true,
		"/approve: " + own:                               true,
		"/approved " + own:                               true,
		"/approve .":                                     true,
		"/ approve " + own:                               true,
		own:                                              true,
	},
	"T13": {
		"> /approve " + own:                           true,
		"> /approve":                                  true,
		"`/approve`":                                  true,
		"    /approve " + own:                         true,
		"```\n/approve " + own + "\n```":              false,
		"<!--\n/approve " + own + "\n-->":             false,
		"<!-- /approve " + own + " -->":               true,
		"Fine.\n\n/approve " + own:                    false,
		"Yes.\n\nOn Monday ada wrote:\n> /approve":    false,
		"\"/approve " + own + "\" is what to write":   true,
		"\t/approve " + own:                           true,
		"* /approve " + own:                           true,
		"# /approve " + own:                           true,
		"~~/approve " + own + "~~":                    true,
		"\\/approve " + own:                           true,
		"-- \n/approve " + own:                        false,
		"I would never\n/approve " + own:              false,
		"> /approve " + own + "\n\nno!":               true,
		"<details>\n/approve " + own + "\n</details>": false,
		"Sounds good\n\nbob wrote:\n> please comment\n/approve " + own + "\n": false,
	},
	"T97": {
		"/approve protected ":                      true,
		"/approve protected please":                true,
		"/approve protected secret":                true,
		"/approve protected, secret":               true,
		"/approve protected.":                      true,
		"/approve protected:":                      true,
		"/approve protected:patchset:":             true,
		"/approve protected " + own:                true,
		"/approve " + own + " protected":           true,
		"/approve  protected":                      true,
		"/approve\tprotected":                      true,
		"/approve Protected":                       true,
		"/approve PROTECTED":                       true,
		"/Approve protected":                       true,
		"/approve protected_path":                  true,
		"/approve fileChange":                      true,
		"/approve secrets":                         true,
		"/approve change":                          true,
		"/approve all":                             true,
		"/approve break_glass":                     true,
		"/approve --break-glass protected":         true,
		"/approve --break-glass protected down":    true,
		"/approve protected sig:x":                 true,
		" /approve protected":                      true,
		"> /approve protected":                     true,
		"`/approve protected`":                     true,
		"    /approve secret":                      true,
		"```\n/approve protected\n```":             false,
		"<!-- /approve secret -->":                 false,
		"Fine.\n\n/approve protected":              false,
		"Yes.\n\nOn Monday ada wrote:\n> /approve": false,
		"approve protected":                        false,
		"protected":                                false,
	},
	"T14": {
		"/аpprove " + own:                      true, // Cyrillic а
		"/approve pаtchset:" + thePatch:        true,
		"/approve\u00a0" + own:                 true,
		"/approve\u2009" + own:                 true,
		"/approve " + own + "\u200b":           true,
		"\u200b/approve " + own:                true,
		"\ufeff/approve " + own:                true,
		"/app\u200drove " + own:                true,
		"/approve \u202e" + own:                true,
		"/approve " + own + "\u2028":           true,
		"/approve " + own + "\x00":             true,
		"／approve " + own:                      true, // full-width slash
		"∕approve " + own:                      true, // division slash
		"/approve \u2066" + own:                true,
		"/approve patchset\u200b:" + thePatch:  true,
		"/approve " + own + "\u202e":           true,
		"/approve patchset：" + thePatch:        true,
		"/approve " + own[:len(own)-1] + "а":   true,
		"\u200b/approve":                       true,
		"/approve protected\u200b":             true,
		"/approve\u00a0protected":              true,
		"/approve prоtected":                   true, // Cyrillic о
		"/app\u200drove it":                    true,
		"/\u0430pprove":                        false,
		"/approve\u200b":                       true,
		"/deny\u200b " + own + " with a blank": true,
	},
}

func TestT07InexactCommands(t *testing.T) { checkInexact(t, "T07") }
func TestT13NotTheFirstLine(t *testing.T) { checkInexact(t, "T13") }
func TestT97NotQuiteShort(t *testing.T)   { checkInexact(t, "T97") }
func TestT14OtherCharacters(t *testing.T) { checkInexact(t, "T14") }

func checkInexact(t *testing.T, threat string) {
	for body, looks := range inexact[threat] {
		if got, ok := approval.ParseCommand(body); ok {
			t.Errorf("%q is taken for %+v", body, got)
		}
		if approval.LooksLike(body) != looks {
			t.Errorf("%q looks like a command: %v", body, !looks)
		}
	}
}

// FuzzParseCommand: what is accepted is the line that it writes back, as far as
// it decides on anything, and that line means the same again.
func FuzzParseCommand(f *testing.F) {
	for _, c := range exact {
		f.Add(c.body)
	}
	for _, bodies := range inexact {
		for body := range bodies {
			f.Add(body)
		}
	}
	f.Add(approval.SignedLine(signedBy("approve", "read it", own)))
	f.Add(approval.SignedLine(signedBy("deny", "", own, "protected:"+own)))
	f.Add(forge.SignedBlock(signedBy("approve", "read it", own)))
	f.Add(strings.ReplaceAll(forge.SignedBlock(signedBy("deny", "", own, "protected:"+own)), "\n", "\r\n"))
	f.Fuzz(func(t *testing.T, body string) {
		c, ok := approval.ParseCommand(body)
		if !ok {
			if c != (approval.Command{}) {
				t.Fatalf("%q: no command, and yet %+v", body, c)
			}
			return
		}
		line, _, _ := strings.Cut(body, "\n")
		line = strings.TrimSuffix(line, "\r")
		if c.Signed {
			s, _, err := approval.ParseSigned(body)
			if err != nil || approval.SignedLine(s) != line && forge.SignedBlock(s) != strings.TrimSuffix(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
				t.Fatalf("%q is %+v, %v", body, c, err)
			}
			return
		}
		if again, ok := approval.ParseCommand(written(c)); !ok || again != c {
			t.Fatalf("%q is %+v, which writes %q and that is %+v", body, c, written(c), again)
		}
		without := c
		without.Reason = ""
		if c.Verb != approval.VerbDeny && !strings.HasPrefix(line, written(without)) || !strings.HasPrefix(line, "/"+string(c.Verb)) {
			t.Fatalf("%q is %+v", body, c)
		}
		if c.Verb == approval.VerbApprove && !c.BreakGlass && line != written(c) {
			t.Fatalf("%q approves as %q", body, written(c))
		}
	})
}

// written is the line that reads as a command, if that is not Signed.
func written(c approval.Command) string {
	words := []string{"/" + string(c.Verb)}
	if c.BreakGlass {
		words = append(words, "--break-glass")
	}
	words = append(words, policy.Word(c.Kind), c.Fingerprint, c.Reason)
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}
