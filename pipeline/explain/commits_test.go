package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func start() files {
	f := files{"go.sum": "v1\n", "other": "a\n"}
	for n := range lives {
		f = f.with(path(n), before(n))
	}
	return f
}

func path(n int) string { return "dir/file" + string(rune('0'+n)) + ".txt" }

// TestBranch: what accounts for the commits of a branch, without a rule of the Policy.
func TestBranch(t *testing.T) {
	base := start()
	does := func(n int, f files) files { return f.with(path(n), after(n)) }
	for name, c := range map[string]struct {
		make func(r *repo, root string) (tip string)
		want string // a line for each commit, the oldest first
	}{
		"nothing": {func(r *repo, root string) string { return root }, ""},
		"made by a transaction": {func(r *repo, root string) string {
			r.put(r.applied(0), "one", does(0, base), root)
			return r.applied(0)
		}, "one: transaction tx0"},
		"squashed": {func(r *repo, root string) string {
			return r.commit("one", does(0, base), root)
		}, "one: transaction tx0"},
		"a pull request's own diff": {func(r *repo, root string) string {
			return r.commit("one", does(5, base), root)
		}, "one: pull_request tx5"},
		"not applied, not approved": {func(r *repo, root string) string {
			return r.commit("two", does(4, does(3, base)), r.commit("one", does(3, base), root))
		}, "one: NOT, of the transaction that proposes it, tx3: it was not applied\ntwo: NOT, of the transaction that proposes it, tx4: it was not approved"},
		"unexplained": {func(r *repo, root string) string {
			return r.commit("one", base.with("other", "b\n"), root)
		}, "one: NOT, no transaction proposes this change"},
		"twice": {func(r *repo, root string) string {
			one := r.commit("one", does(0, base), root)
			return r.commit("again", does(0, base), r.commit("revert", base, one))
		}, "one: transaction tx0\nrevert: NOT, no transaction proposes this change\nagain: NOT, tx0 was approved for commit one; the same change again takes an approval of its own"},
		"before the commit that its apply made": {func(r *repo, root string) string {
			back := r.commit("revert", base, r.commit("early", does(0, base), root))
			r.put(r.applied(0), "made", does(0, base), back)
			return r.applied(0)
		}, "early: NOT, tx0 was approved for commit made; the same change again takes an approval of its own\nrevert: NOT, no transaction proposes this change\nmade: transaction tx0"},
		"words": {func(r *repo, root string) string {
			one := r.commit("one\n\nCountersign-Transaction: tx_01KE5W5200041061050R3GG28A", base.with("other", "b\n"), root)
			two := r.commit("two\n\nCountersign-Transaction: me", base.with("other", "c\n"), one)
			return r.commit("three", base.with("other", "c\n"), two)
		}, "one: NOT, names tx_01KE5W5200041061050R3GG28A, which the ledger does not have; no transaction proposes this change\n" +
			"two: NOT, names me, which is not a transaction id; no transaction proposes this change\nthree: empty"},
		"the first commit of all": {func(r *repo, root string) string {
			return r.commit("unborn", does(0, base))
		}, "unborn: NOT, has no parent: no patch is all that a repository began with"},
		"what no patch can be": {func(r *repo, root string) string {
			return r.commit("one", base.with(".git/config", "x\n"), root)
		}, "one: NOT, no transaction can propose it: "},

		// Files that changed elsewhere meanwhile, and several at once.
		"another line moved": {func(r *repo, root string) string {
			moved := base.with(path(0), before(0)+"four\n")
			return r.commit("one", moved.with(path(0), after(0)+"four\n"), r.commit("move", moved, root))
		}, "move: NOT, no transaction proposes this change\none: transaction tx0"},
		"and a line more": {func(r *repo, root string) string {
			moved := base.with(path(0), before(0)+"four\n")
			return r.commit("one", moved.with(path(0), after(0)+"four\nfive\n"), r.commit("move", moved, root))
		}, "move: NOT, no transaction proposes this change\none: NOT, 1 approved patch is in it, and more than that dir/file0.txt:5-5"},
		"the line beside moved": {func(r *repo, root string) string {
			moved := base.with(path(0), "ONE\nhello 0\nthree\n")
			return r.commit("one", moved.with(path(0), "ONE\nhello, world 0\nthree\n"), r.commit("move", moved, root))
		}, "move: NOT, no transaction proposes this change\none: NOT, no transaction proposes this change"},
		"three in one": {func(r *repo, root string) string {
			return r.commit("all", does(2, does(1, does(0, base))), root)
		}, "all: transaction tx1 tx2 tx0"},
		"three in one, one of them not applied": {func(r *repo, root string) string {
			return r.commit("all", does(4, does(1, does(0, base))), root)
		}, "all: NOT, 2 approved patches are in it, and more than that dir/file4.txt:0-0"},
		"two in one, and one of them again": {func(r *repo, root string) string {
			all := r.commit("both", does(1, does(0, base)), root)
			return r.commit("again", does(1, does(0, base)), r.commit("revert", does(1, base), all))
		}, "both: transaction tx1 tx0\nrevert: NOT, no transaction proposes this change\nagain: NOT, tx0 was approved for commit both; the same change again takes an approval of its own"},
		"again, where another line moved": {func(r *repo, root string) string {
			moved := base.with(path(0), before(0)+"four\n")
			return r.commit("again", moved.with(path(0), after(0)+"four\n"), r.commit("move", moved, r.commit("one", does(0, base), root)))
		}, "one: transaction tx0\nmove: NOT, no transaction proposes this change\nagain: NOT, tx0 was approved for commit one; the same change again takes an approval of its own"},

		// Merges as forges make them, of what was approved on files that changed meanwhile.
		"rebased": {func(r *repo, root string) string {
			moved := base.with(path(0), before(0)+"four\n").with(path(1), before(1)+"four\n")
			one := r.commit("one", moved.with(path(0), after(0)+"four\n"), r.commit("move", moved, root))
			return r.commit("two", moved.with(path(0), after(0)+"four\n").with(path(1), after(1)+"four\n"), one)
		}, "move: NOT, no transaction proposes this change\none: transaction tx0\ntwo: transaction tx1"},
		"squashed, two on files that moved": {func(r *repo, root string) string {
			moved := base.with(path(0), before(0)+"four\n").with(path(1), before(1)+"four\n")
			return r.commit("one", moved.with(path(0), after(0)+"four\n").with(path(1), after(1)+"four\n"), r.commit("move", moved, root))
		}, "move: NOT, no transaction proposes this change\none: transaction tx1 tx0"},
		"a conflict, resolved by hand": {func(r *repo, root string) string {
			r.put(r.applied(0), "made", does(0, base), root)
			other := r.commit("other", base.with(path(0), "one\nhi 0\nthree\n"), root)
			return r.commit("hand", base.with(path(0), "one\nhi, world 0\nthree\n"), other, r.applied(0))
		}, "made: transaction tx0\nother: NOT, no transaction proposes this change\nhand: NOT, is a merge, for which the Policy has no rule, and no transaction proposes this change"},
		"a conflict, resolved as approved": {func(r *repo, root string) string {
			r.put(r.applied(0), "made", does(0, base), root)
			other := r.commit("other", base.with(path(0), "one\nhi 0\nthree\n"), root)
			return r.commit("hand", does(0, base), other, r.applied(0))
		}, "made: transaction tx0\nother: NOT, no transaction proposes this change\nhand: NOT, is a merge, for which the Policy has no rule, and no transaction proposes this change"},

		// Commits in a row.
		"a range": {func(r *repo, root string) string {
			half := r.commit("half", base.with(path(0), "one\nthree\n"), root)
			return r.commit("whole", does(0, base), half)
		}, "half: transaction tx0, of root..whole\nwhole: transaction tx0, of root..whole"},
		"a range, where another line moved": {func(r *repo, root string) string {
			moved := base.with(path(0), before(0)+"four\n")
			half := r.commit("half", moved.with(path(0), "one\nthree\nfour\n"), r.commit("move", moved, root))
			return r.commit("whole", moved.with(path(0), after(0)+"four\n"), half)
		}, "move: NOT, no transaction proposes this change\nhalf: transaction tx0, of move..whole\nwhole: transaction tx0, of move..whole"},
		"a range that leaves more behind": {func(r *repo, root string) string {
			half := r.commit("half", base.with(path(0), "one\nthree\n"), root)
			return r.commit("whole", does(0, base).with("other", "b\n"), half)
		}, "half: NOT, no transaction proposes this change\nwhole: NOT, no transaction proposes this change"},

		"a line of its own on the way": {func(r *repo, root string) string {
			half := r.commit("half", base.with(path(0), "one\nhalf\nthree\n"), root)
			return r.commit("whole", does(0, base), half)
		}, "half: NOT, no transaction proposes this change\nwhole: NOT, no transaction proposes this change"},
		"a file that comes and goes on the way": {func(r *repo, root string) string {
			half := r.commit("half", base.with(path(0), "one\nthree\n").with(".github/workflows/evil.yml", "on: push\n"), root)
			return r.commit("whole", does(0, base), half)
		}, "half: NOT, no transaction proposes this change\nwhole: NOT, no transaction proposes this change"},
		"a mode that comes and goes on the way": {func(r *repo, root string) string {
			half := r.commit("half", base.with(path(0), "x:one\nthree\n"), root)
			return r.commit("whole", does(0, base), half)
		}, "half: NOT, no transaction proposes this change\nwhole: NOT, no transaction proposes this change"},
		"a row of what was not applied, and of what was used": {func(r *repo, root string) string {
			half := r.commit("half", base.with(path(3), "one\nthree\n"), root)
			one := r.commit("one", does(0, does(3, base)), r.commit("whole", does(3, base), half))
			back := r.commit("back", does(3, base), one)
			return r.commit("rest", does(0, does(3, base)), r.commit("again", does(3, base).with(path(0), "one\nthree\n"), back))
		}, "half: NOT, of the transaction that proposes it with the commits beside it, tx3: it was not applied\nwhole: NOT, of the transaction that proposes it with the commits beside it, tx3: it was not applied\n" +
			"one: transaction tx0\nback: NOT, no transaction proposes this change\nagain: NOT, tx0 was approved for commit one; the same change again takes an approval of its own\nrest: NOT, tx0 was approved for commit one; the same change again takes an approval of its own"},
		"an empty commit on the way": {func(r *repo, root string) string {
			half := r.commit("half", base.with(path(0), "one\nthree\n"), root)
			return r.commit("whole", does(0, base), r.commit("empty", base.with(path(0), "one\nthree\n"), half))
		}, "half: transaction tx0, of root..whole\nempty: transaction tx0, of root..whole\nwhole: transaction tx0, of root..whole"},

		// Merges.
		"a merge, as one change": {func(r *repo, root string) string {
			side := r.commit("whole", does(0, base), r.commit("half", base.with(path(0), "one\nhalf\nthree\n"), root))
			return r.commit("merge", does(0, base), root, side)
		}, "half: transaction tx0, of merge\nwhole: transaction tx0, of merge\nmerge: transaction tx0"},
		"a merge onto what moved": {func(r *repo, root string) string {
			moved := base.with(path(0), before(0)+"four\n")
			r.put(r.applied(0), "made", does(0, base), root)
			return r.commit("merge", moved.with(path(0), after(0)+"four\n"), r.commit("move", moved, root), r.applied(0))
		}, "made: transaction tx0\nmove: NOT, no transaction proposes this change\nmerge: transaction tx0"},
		"a queue": {func(r *repo, root string) string {
			r.put(r.applied(0), "made0", does(0, base), root)
			r.put(r.applied(1), "made1", does(1, base), root)
			first := r.commit("first", does(0, base), root, r.applied(0))
			return r.commit("second", does(1, does(0, base)), first, r.applied(1))
		}, "made0: transaction tx0\nmade1: transaction tx1\nfirst: transaction tx0\nsecond: transaction tx1"},
		"a merge that hides a change": {func(r *repo, root string) string {
			r.put(r.applied(0), "made", does(0, base), root)
			return r.commit("evil", does(0, base).with("other", "b\n"), root, r.applied(0))
		}, "made: transaction tx0\nevil: NOT, is a merge, for which the Policy has no rule, and 1 approved patch is in it, and more than that other:0-0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			root := r.commit("root", base)
			wantLines(t, r.judge(r.options(), root, c.make(r, root)), c.want)
		})
	}
}

// wantLines compares lines; a wanted one that ends in ": " is only the beginning.
func wantLines(t *testing.T, got []string, want string) {
	t.Helper()
	wanted := strings.Split(want, "\n")
	if want == "" {
		wanted = nil
	}
	if !slices.EqualFunc(got, wanted, func(g, w string) bool { return g == w || strings.HasSuffix(w, ": ") && strings.HasPrefix(g, w) }) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// rules are a Policy by which merges are covered, and a bot may change some paths.
func rules(paths ...string) string {
	return fmt.Sprintf("version: 1\nexplained: {merges: covered, bots: [{keys: keys, paths: [%s]}]}\n", strings.Join(paths, ", "))
}

// TestRules: merges and bots that a rule of the Policy accounts for.
func TestRules(t *testing.T) {
	base := start().with(".github/countersign.yml", rules("/go.sum", "/go.mod", "/lock", "/.gitattributes"))
	bot, eve := teststand.Ed25519(1), teststand.Ed25519(2)
	line := func(options string) string { return "bot@example.org " + options + " " + bot.Public + "\n" }
	const whom = `namespaces="git"`
	signs := func(r *repo, name string, f files, by teststand.Signer, parents ...string) string {
		return r.signed(r.commit(name, f, parents...), by.Sign)
	}
	for name, c := range map[string]struct {
		keys string // "" for a file that cannot be read
		make func(r *repo, root string) (tip string)
		want string
	}{
		"a bot": {line(whom), func(r *repo, root string) string {
			return signs(r, "one", base.with("go.sum", "v2\n"), bot, root)
		}, "one: bot bot@example.org"},
		"the wrong path": {line(whom), func(r *repo, root string) string {
			return signs(r, "one", base.with("go.sum", "v2\n").with("other", "b\n"), bot, root)
		}, "one: NOT, no transaction proposes this change; bot@example.org signed it, but other is none of its paths"},
		"a protected path": {line(whom), func(r *repo, root string) string {
			return signs(r, "one", base.with(".gitattributes", "* -text\n"), bot, root)
		}, "one: NOT, no transaction proposes this change; bot@example.org signed it, but .gitattributes is protected"},
		"another key": {line(whom), func(r *repo, root string) string {
			return signs(r, "one", base.with("go.sum", "v2\n"), eve, root)
		}, "one: NOT, no transaction proposes this change; explained.bots[0] does not have who signed it: "},
		"an expired key": {line(whom + `,valid-before="20260101Z"`), func(r *repo, root string) string {
			return signs(r, "one", base.with("go.sum", "v2\n"), bot, root)
		}, "one: NOT, no transaction proposes this change; explained.bots[0] does not have who signed it: "},
		"no signature": {line(whom), func(r *repo, root string) string {
			return r.commit("one", base.with("go.sum", "v2\n"), root)
		}, "one: NOT, no transaction proposes this change"},
		"a signature of other bytes": {line(whom), func(r *repo, root string) string {
			one := signs(r, "one", base.with("go.sum", "v2\n"), bot, root)
			r.raw[one] = append(r.raw[one], "more\n"...)
			return one
		}, "one: NOT, no transaction proposes this change; explained.bots[0] does not have who signed it: "},
		"no keys": {"", func(r *repo, root string) string {
			return signs(r, "one", base.with("go.sum", "v2\n"), bot, root)
		}, "one: NOT, no transaction proposes this change; explained.bots[0] does not have who signed it: "},

		"a covered merge": {line(whom), func(r *repo, root string) string {
			left := signs(r, "left", base.with("go.sum", "v2\n"), bot, root)
			right := r.commit("right", base.with(path(0), after(0)).with(path(1), after(1)), r.commit("rest", base.with(path(0), after(0)), root))
			return r.commit("merge", base.with("go.sum", "v2\n").with(path(0), after(0)).with(path(1), after(1)), left, right)
		}, "left: bot bot@example.org\nrest: transaction tx1 tx0, of merge\nright: transaction tx1 tx0, of merge\nmerge: transaction tx1 tx0"},
		"a merge of two bots": {line(whom), func(r *repo, root string) string {
			left := signs(r, "left", base.with("go.sum", "v2\n"), bot, root)
			right := signs(r, "right", base.with("go.mod", "m\n"), bot, root)
			return r.commit("merge", base.with("go.sum", "v2\n").with("go.mod", "m\n"), left, right)
		}, "left: bot bot@example.org\nright: bot bot@example.org\nmerge: merge"},
		"a merge that hides a change": {line(whom), func(r *repo, root string) string {
			left := signs(r, "left", base.with("go.sum", "v2\n"), bot, root)
			right := signs(r, "right", base.with("go.mod", "m\n"), bot, root)
			return r.commit("evil", base.with("go.sum", "v2\n").with("go.mod", "m\n").with("other", "b\n"), left, right)
		}, "left: bot bot@example.org\nright: bot bot@example.org\nevil: NOT, is a merge that has more than both sides, or less other:1-1"},
		"a merge that takes one side": {line(whom), func(r *repo, root string) string {
			left := signs(r, "left", base.with("go.sum", "v2\n"), bot, root)
			right := signs(r, "right", base.with("go.mod", "m\n"), bot, root)
			return r.commit("ours", base.with("go.sum", "v2\n"), left, right)
		}, "left: bot bot@example.org\nright: bot bot@example.org\nours: NOT, is a merge that has more than both sides, or less go.mod:0-0"},
		"a conflict, resolved by hand": {line(whom), func(r *repo, root string) string {
			left := signs(r, "left", base.with("go.sum", "v2\n"), bot, root)
			right := signs(r, "right", base.with("go.sum", "v3\n"), bot, root)
			return r.commit("hand", base.with("go.sum", "v4\n"), left, right)
		}, "left: bot bot@example.org\nright: bot bot@example.org\nhand: NOT, is a merge with a conflict that was resolved by hand go.sum:1-1"},
		"a merge of what nothing accounts for": {line(whom), func(r *repo, root string) string {
			left := signs(r, "left", base.with("go.sum", "v2\n"), bot, root)
			right := r.commit("right", base.with("other", "b\n"), root)
			return r.commit("merge", base.with("go.sum", "v2\n").with("other", "b\n"), left, right)
		}, "left: bot bot@example.org\nright: NOT, no transaction proposes this change\nmerge: NOT, is a merge of 1 commit that nothing accounts for"},
		"three histories": {line(whom), func(r *repo, root string) string {
			left := signs(r, "left", base.with("go.sum", "v2\n"), bot, root)
			right := signs(r, "right", base.with("go.mod", "m\n"), bot, root)
			third := signs(r, "third", base.with("lock", "l\n"), bot, root)
			return r.commit("octopus", base.with("go.sum", "v2\n").with("go.mod", "m\n").with("lock", "l\n"), left, right, third)
		}, "left: bot bot@example.org\nright: bot bot@example.org\nthird: bot bot@example.org\noctopus: NOT, is a merge of 3 histories, which is not made again here"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			base = base.with("keys", c.keys) // "" is no file
			root := r.commit("root", base)
			wantLines(t, r.judge(r.options(), root, c.make(r, root)), c.want)
		})
	}
}

// TestT79MergeOfWhatWasBefore: what is from before the oldest transaction is not judged where the
// branch had it. A merge that brings it to the branch is explained by no rule.
func TestT79MergeOfWhatWasBefore(t *testing.T) {
	bot := teststand.Ed25519(1)
	base := start().with(".github/countersign.yml", rules("/go.sum")).with("keys", `bot@example.org namespaces="git" `+bot.Public+"\n")
	evil := base.with("other", "b\n")
	for name, c := range map[string]struct {
		make func(r *repo, root, old string) (tip string)
		want string
	}{
		"below what is explained": {func(r *repo, root, old string) string {
			return r.commit("merge", evil.with(path(0), after(0)), root, r.commit("one", evil.with(path(0), after(0)), old))
		}, "one: transaction tx0\nmerge: NOT, is a merge that brings commit old, which is from before the oldest transaction and was not on this branch"},
		"alone": {func(r *repo, root, old string) string {
			return r.commit("merge", evil.with(path(0), after(0)), r.commit("one", base.with(path(0), after(0)), root), old)
		}, "one: transaction tx0\nmerge: NOT, is a merge that brings commit old, which is from before the oldest transaction and was not on this branch"},
		"by way of another merge": {func(r *repo, root, old string) string {
			inner := r.commit("inner", evil.with(path(0), after(0)), r.commit("one", base.with(path(0), after(0)), root), old)
			return r.commit("merge", evil.with(path(0), after(0)).with(path(1), after(1)), r.commit("two", base.with(path(1), after(1)), root), inner)
		}, "one: transaction tx0\ninner: merge\ntwo: transaction tx1\nmerge: NOT, is a merge that brings commit old, which is from before the oldest transaction and was not on this branch"},
		"which the branch had": {func(r *repo, root, old string) string {
			one := r.signed(r.commit("one", base.with("go.sum", "v2\n"), root), bot.Sign)
			inner := r.commit("inner", evil.with("go.sum", "v2\n"), one, old)
			return r.commit("merge", evil.with("go.sum", "v2\n").with(path(1), after(1)), r.commit("two", evil.with(path(1), after(1)), old), inner)
		}, "one: bot bot@example.org\ninner: merge\ntwo: transaction tx1\nmerge: merge"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			root := r.commit("root", base)
			old := r.commit("old", evil, root)
			o := r.options()
			o.Default = []string{root}
			if name == "which the branch had" {
				o.Default = nil
			}
			wantLines(t, r.judge(o, old, c.make(r, root, old)), c.want)
		})
	}
}

// TestAbsent: without any one file of a transaction's record nothing is explained by it,
// neither the change itself nor one that is made of its patch again.
func TestAbsent(t *testing.T) {
	r := newRepo(t)
	moved := start().with(path(0), before(0)+"four\n")
	root, before := r.commit("root", start()), r.commit("moved root", moved)
	for what, c := range map[string]struct{ since, tip string }{
		"exact":  {root, r.commit("one", start().with(path(0), after(0)), root)},
		"replay": {before, r.commit("one", moved.with(path(0), after(0)+"four\n"), before)},
	} {
		wantLines(t, r.judge(r.options(), c.since, c.tip), "one: transaction tx0")
		var id string
		for known, name := range r.names {
			if name == "tx0" {
				id = known
			}
		}
		tried := 0
		for name, file := range r.ledger {
			if !strings.Contains(name, id) || strings.HasSuffix(name, "/README.md") { // which is for people
				continue
			}
			tried++
			delete(r.ledger, name)
			if index, err := indexOf(r.ledger); err == nil {
				o := r.options()
				o.Index = index
				got, err := explain.Run(t.Context(), o, r.log[slices.IndexFunc(r.log, func(b code.BranchCommit) bool { return b.ID == c.tip }):][:1])
				if err == nil && len(got.Explained) > 0 {
					t.Errorf("%s: without %s: %+v", what, name, got.Explained)
				}
			}
			r.ledger[name] = file
		}
		if tried < 5 {
			t.Errorf("%s: only %d files", what, tried)
		}
	}
	gone, o := r.commit("one", moved.with(path(0), after(0)+"four\n"), before), r.options()
	for known, tree := range r.trees {
		if len(tree) == 1 {
			delete(r.trees, known)
		}
	}
	wantLines(t, r.judge(o, before, gone), "one: NOT, 1 approved patch could not be made again here, as of tx0: the commit that it was reviewed on is not here")
}
