package site

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/view"
)

//go:embed search.js
var searchScript []byte

// The index of search is files of scripts, which a page may load from a directory as well as from a
// server: search/i/t/N.js has what is shown of the transactions N*perBlock and on, search/i/SHARD.js
// the terms of a shard, each with the transactions that have it, by number. Terms are words in lower
// case. search.js splits what is typed, and finds the shard of a word, as termsOf and shardOf do.
const (
	scriptAddress = "search/search.js"
	indexDir      = "search/i/"
	perBlock      = 250
)

// Bounds of the terms of one transaction.
const (
	maxTerms = 2000
	maxTerm  = 64 // letters
)

// An index has the transactions of each term, ascending, and the terms of each shard.
type index struct {
	numbers map[string][]int32
	shards  map[string][]string
}

// newIndex makes the index.
func (s *Site) newIndex() index {
	x := index{map[string][]int32{}, map[string][]string{}}
	for i := range s.all {
		for term := range termsOf(&s.all[i]) {
			if x.numbers[term] == nil {
				shard := shardOf(term)
				x.shards[shard] = append(x.shards[shard], term)
			}
			x.numbers[term] = append(x.numbers[term], int32(i))
		}
	}
	return x
}

// termsOf are the terms that a transaction is found by: the words of its summary, paths and people,
// its id, patch_id, commits and pull request, how it stands (is:waiting, is:waits-for-approval), and the
// days on which it was proposed and decided (2026-11-26, which begins with its month).
func termsOf(t *html.Summary) map[string]bool {
	out := map[string]bool{}
	words(strings.TrimPrefix(t.ID, "tx_"), out)
	words(t.PatchID, out)
	for _, c := range t.Commits {
		words(c, out)
	}
	if t.PullRequest > 0 {
		out["#"+strconv.Itoa(t.PullRequest)] = true
	}
	out["is:"+standings[outcomeOf(t)].name] = true
	out["is:"+strings.NewReplacer(", ", "-", " ", "-").Replace(string(t.State))] = true
	if t.Own && t.Sound() {
		out["is:"+own.name] = true
	}
	for _, at := range []string{t.Proposed, t.Decided} {
		if day, _, ok := strings.Cut(at, "T"); ok && isDay().MatchString(day) {
			out[day] = true
		}
	}
	words(t.Summary, out)
	for _, a := range slices.Concat([]ledger.Actor{t.Proposer}, t.Approvers, t.Deniers) {
		words(a.Login, out)
		words(a.ID, out)
	}
	for _, name := range t.Paths {
		words(name, out)
	}
	return out
}

// words adds the words of a text: letters, digits and marks in lower case.
func words(text string, out map[string]bool) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !isWord(r) }) {
		if len(out) >= maxTerms {
			return
		}
		out[strings.Map(unicode.ToLower, begin(word, maxTerm))] = true
	}
}

// begin are the first letters of a word, at most most of them.
func begin(word string, most int) string {
	letters := []rune(word)
	return string(letters[:min(len(letters), most)])
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M)
}

// Terms that are no words: a day, as no word has a hyphen, and the rest of a transaction's id.
var (
	isDay  = canon.Regexp(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	isULID = canon.Regexp(`^[0-7][0-9a-hjkmnp-tv-z]{25}$`)
)

// shardOf is the shard of a term: words are by their first two letters, so that a shard has all that
// begin like a word; days by their month; ids of transactions, which all begin alike, and pull requests by
// what they end with.
func shardOf(term string) string {
	last := term[len(term)-1:]
	switch {
	case term[0] == '#':
		return "p" + last
	case strings.HasPrefix(term, "is:"):
		return "is"
	case isDay().MatchString(term):
		return "d" + term[:len("2026-11")]
	case isULID().MatchString(term):
		return "x" + last
	}
	two := begin(term, 2)
	if strings.Trim(two, "0123456789abcdefghijklmnopqrstuvwxyz") == "" {
		return "w" + two
	}
	h := fnv.New32a() // of FNV-1a the low byte
	_, _ = h.Write([]byte(two))
	return fmt.Sprintf("u%02x", h.Sum32()&0xff)
}

// indexFile makes a file of the index.
func (s *Site) indexFile(name string) ([]byte, bool) {
	name, ok := strings.CutSuffix(name, ".js")
	if block, isBlock := strings.CutPrefix(name, "t/"); ok && isBlock {
		n, err := strconv.Atoi(block)
		if err != nil || n < 0 || n*perBlock >= len(s.all) || strconv.Itoa(n) != block {
			return nil, false
		}
		return s.block(n), true
	}
	x := s.index()
	terms := slices.Sorted(slices.Values(x.shards[name]))
	if !ok || len(terms) == 0 {
		return nil, false
	}
	list := make([][2]any, len(terms))
	for i, term := range terms {
		list[i] = [2]any{term, x.numbers[term]}
	}
	return call("terms", name, list), true
}

// block is what search shows of some transactions.
func (s *Site) block(n int) []byte {
	var rows [][7]string
	for i := n * perBlock; i < min(len(s.all), (n+1)*perBlock); i++ {
		t := &s.all[i]
		row := [7]string{t.ID, t.Proposed[:min(len(t.Proposed), 10)], escape.ShortenTo(t.Summary, 100), string(t.State), t.Class(), escape.ShortenTo(t.Proposer.Login, 60), decidedBy(t)}
		for j := range row {
			row[j] = escape.Clean(row[j]) // the script sets it as text
		}
		rows = append(rows, row)
	}
	return call("block", strconv.Itoa(n), rows)
}

// decidedBy names some whose decision counted.
func decidedBy(t *html.Summary) string {
	all := slices.Concat(t.Approvers, t.Deniers)
	return view.Joined(all[:min(len(all), 5)], ", ", nameOf)
}

// call is a script that hands data to search.js. The data is JSON, in which Go escapes what means
// something in HTML or ends a line of a script.
func call(what, name string, data any) []byte {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("site: " + err.Error()) // strings and numbers
	}
	return fmt.Appendf(nil, "countersign(%q, %q, %s);\n", what, name, raw)
}

// Scripts are the scripts that a page of a site runs, which its policy allows.
func Scripts(address string) []string {
	if address == searchAddress {
		return []string{scriptAddress}
	}
	return nil
}

func (s *Site) searchPage() []byte { return s.doc(searchAddress, "Search").bytes("search", nil) }
