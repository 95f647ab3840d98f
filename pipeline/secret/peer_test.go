package secret_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// The rules of gitleaks.toml as gitleaks reads them, with nothing of this
// package's own reader.
type (
	peerConfig struct {
		Allowlist peerAllowlist // for every rule
		Rules     []peerRule
	}
	peerRule struct {
		ID, Path, Regex string
		SecretGroup     int
		Entropy         float64
		Keywords        []string
		Allowlists      []peerAllowlist
		expr            *regexp.Regexp // nil: the rule is for paths only
	}
	peerAllowlist struct {
		Condition, RegexTarget    string
		Paths, Regexes, StopWords []string
		exprs                     []*regexp.Regexp
	}
)

func gitleaks(t testing.TB) (c peerConfig) {
	t.Helper()
	file, err := os.ReadFile("gitleaks.toml")
	if err == nil {
		err = toml.Unmarshal(file, &c)
	}
	fatal(t, err)
	compile := func(a *peerAllowlist) {
		for _, expr := range a.Regexes {
			a.exprs = append(a.exprs, regexp.MustCompile(expr))
		}
	}
	compile(&c.Allowlist)
	for i := range c.Rules {
		if r := &c.Rules[i]; r.Regex != "" {
			r.expr = regexp.MustCompile(r.Regex)
		}
		for j := range c.Rules[i].Allowlists {
			compile(&c.Rules[i].Allowlists[j])
		}
	}
	if len(c.Rules) < 200 || len(c.Allowlist.exprs) == 0 {
		t.Fatal("gitleaks' rules are not as expected")
	}
	return c
}

type peerFinding struct{ rule, secret string }

// detected is what gitleaks finds in a text, put together from the parts of it
// that can be had without its readers of archives and of repositories.
func detected(c peerConfig, text string) (out []peerFinding) {
	low := strings.ToLower(text)
	for _, r := range c.Rules {
		if r.expr == nil || r.Path != "" || !slices.ContainsFunc(r.Keywords, func(k string) bool { return strings.Contains(low, strings.ToLower(k)) }) {
			continue
		}
		for _, at := range r.expr.FindAllStringIndex(text, -1) {
			match := strings.Trim(text[at[0]:at[1]], "\n")
			value := match
			if groups := r.expr.FindStringSubmatch(match); r.SecretGroup > 0 && len(groups) > r.SecretGroup {
				value = groups[r.SecretGroup]
			} else if i := slices.IndexFunc(groups, func(g string) bool { return g != "" && g != match }); r.SecretGroup == 0 && i > 0 {
				value = groups[i]
			}
			line := text[strings.LastIndexByte(text[:at[0]], '\n')+1:]
			line, _, _ = strings.Cut(line, "\n")
			if shannon(value) > r.Entropy && !peerAllows([]peerAllowlist{c.Allowlist}, value, match, line) && !peerAllows(r.Allowlists, value, match, line) {
				out = append(out, peerFinding{r.ID, value})
			}
		}
	}
	return out
}

func peerAllows(lists []peerAllowlist, value, match, line string) bool {
	for _, a := range lists {
		target := value
		switch a.RegexTarget {
		case "match":
			target = match
		case "line":
			target = line
		}
		byRegex := slices.ContainsFunc(a.exprs, func(expr *regexp.Regexp) bool { return expr.MatchString(target) })
		byWord := slices.ContainsFunc(a.StopWords, func(word string) bool { return strings.Contains(strings.ToLower(value), strings.ToLower(word)) })
		if a.Condition == "AND" {
			if len(a.Paths) == 0 && byRegex == (len(a.Regexes) > 0) && byWord == (len(a.StopWords) > 0) {
				return true
			}
		} else if byRegex || byWord {
			return true
		}
	}
	return false
}

func shannon(s string) (sum float64) {
	count := map[rune]float64{}
	for _, r := range s {
		count[r]++
	}
	for _, n := range count {
		sum -= n / float64(len(s)) * math.Log2(n/float64(len(s)))
	}
	return sum
}

// T46: what gitleaks itself finds is found. Texts are made of its keywords,
// values of many shapes, and secrets; its findings are those of whole texts.
func TestT46AsGitleaks(t *testing.T) {
	if testing.Short() {
		t.Skip("much work, on one goroutine")
	}
	c, f := gitleaks(t), secret.Default()
	r := rand.New(rand.NewPCG(11, 12))
	keywords := map[string]bool{}
	for _, rule := range c.Rules {
		for _, k := range rule.Keywords {
			keywords[strings.ToLower(k)] = true
		}
	}
	names := slices.Sorted(maps.Keys(keywords))
	found := 0
	texts := 8
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		texts = 24
	}
	for seed := range uint64(texts) {
		text := shapes(r, names, teststand.SamplesFrom(seed))
		out := f.Text(text)
		for _, finding := range detected(c, text) {
			found++
			value := strings.Trim(finding.secret, "\n\"'`")
			if strings.Contains(out, value) {
				t.Errorf("%s is left: %q\n%.3000s", finding.rule, value, out)
			}
		}
	}
	if found < 6*texts {
		t.Errorf("gitleaks found only %d secrets: the texts prove little", found)
	}
}

// shapes is a text in which about a third of the lines hold what a rule may
// look for.
func shapes(r *rand.Rand, names []string, samples []teststand.Sample) string {
	const hex, alnum = "0123456789abcdef", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	sizes := []int{8, 12, 14, 15, 16, 17, 18, 20, 22, 24, 25, 26, 30, 32, 34, 36, 37, 40, 43, 44, 45, 50, 60, 64, 73, 90, 140}
	of := digitsOf(r)
	var b strings.Builder
	for range 60 {
		name, value := names[r.IntN(len(names))], of(sizes[r.IntN(len(sizes))], []string{hex, alnum, alnum[:36], alnum[26:62]}[r.IntN(4)])
		switch r.IntN(6) {
		case 0:
			b.WriteString(name + "_token = \"" + value + "\"\n")
		case 1:
			b.WriteString("x." + strings.ToUpper(name) + ": '" + value + "',\n")
		case 2:
			b.WriteString(name + value + "\n")
		case 3:
			b.WriteString("use " + samples[r.IntN(len(samples))].Text() + "\n")
		default:
			b.WriteString("the " + name + " is 漢字 of " + of(7, alnum) + "\n")
		}
	}
	return b.String()
}

// ordinary is a patch of about size bytes of new and changed code.
func ordinary(t testing.TB, size int) patch.Patchset {
	t.Helper()
	r := rand.New(rand.NewPCG(21, 22))
	before, after := map[string]string{}, map[string]string{}
	for n := 0; n < size; {
		name := "pkg/dir" + string(rune('a'+len(after)%26)) + "/file" + strings.Repeat("x", len(after)/26) + ".go"
		old, text := code(r, 300), code(r, 400)
		if len(after)%3 > 0 {
			lines := strings.SplitAfter(old, "\n")
			text = strings.Join(lines[:100], "") + code(r, 60) + strings.Join(lines[140:], "")
			before[name] = old
		}
		after[name] = text
		n += len(text) / (1 + 2*min(1, len(after)%3))
	}
	return change(t, before, after)
}

// code is n lines that look like a program's.
func code(r *rand.Rand, n int) string {
	lines := []string{
		"\tif err := c.store.Put(ctx, key, value); err != nil {\n", "\t\treturn nil, fmt.Errorf(\"opening %s: %w\", path, err)\n", "\t}\n", "\n",
		"// Token returns the access token of the session, or an empty string.\n", "func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) bool {\n",
		"\thash := sha256.Sum256([]byte(\"0123456789abcdef\"))\n", "import \"github.com/countersign-dev/countersign/pipeline/canon\"\n", "\tfor i, name := range names {\n",
		"\t{\"name\": \"value\", \"count\": 12, \"path\": \"a/b/c.txt\"},\n", "\tapiVersion: apps/v1\n", "github.com/spf13/cobra v1.10.2/go.mod h1:7C1pvHqHw5A4vrJfjNwvOdzYu0Gml16OCs2GRiTUUS4=\n",
		"\tx := strings.ReplaceAll(s, \"\\n\", \"\\\\n\") // keep it on one line\n", "\tconst want = \"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n",
	}
	var b strings.Builder
	for range n {
		b.WriteString(lines[r.IntN(len(lines))])
	}
	return b.String()
}

// T48: ordinary patches have no secrets.
func TestT48Ordinary(t *testing.T) {
	set := ordinary(t, 1<<18)
	if found := secret.Default().Patch(set); found != nil {
		t.Error(found)
	}
	if out := secret.Default().Diff(set.Bytes()); string(out) != string(set.Bytes()) {
		t.Error("the diff was redacted")
	}
}

// BenchmarkDiff5MB scans and redacts a patch whose diff is 5 MB.
func BenchmarkDiff5MB(b *testing.B) {
	set := ordinary(b, 5<<20)
	diff := set.Bytes()
	f := secret.Default()
	f.Text("warm up")
	b.SetBytes(int64(len(diff)))
	for b.Loop() {
		_, found, clean := f.Learn(set)
		if len(found) > 0 || len(clean) != len(diff) {
			b.Fatal("found a secret")
		}
	}
}

// BenchmarkRun is what a run over a small patch pays: three files, both
// functions, and forty short texts.
func BenchmarkRun(b *testing.B) {
	set := change(b, map[string]string{"a": tenLines, "b": tenLines}, map[string]string{"a": tenLines + "x\n", "b": "y\n", "c": tenLines})
	f := secret.Default()
	f.Text("warm up")
	for b.Loop() {
		f.Patch(set)
		f.Diff(set.Bytes())
		for range 40 {
			f.Text("approved patchset:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 by octocat")
		}
	}
}
