package explain_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestT79RuleForARange: what a bot signed is a commit on its own parents. All that changed between
// two commits is not signed by whom signed the last, nor is a merge that changes no file
// accounted for as a commit that does not.
func TestT79RuleForARange(t *testing.T) {
	t.Parallel()
	bot := teststand.Ed25519(1)
	base := start().with(".github/countersign.yml", rules("/go.sum")).with("keys", "bot@example.org namespaces=\"git\" "+bot.Public+"\n")
	for name, c := range map[string]struct {
		make func(r *repo, root string) (tip string)
		want bool
	}{
		"its own commit": {func(r *repo, root string) string {
			return r.signed(r.commit("one", base.with("go.sum", "v2\n"), root), bot.Sign)
		}, true},
		"what it was made on": {func(r *repo, root string) string {
			evil := r.commit("evil", base.with("go.sum", "evil\n"), root)
			return r.signed(r.commit("one", base.with("go.sum", "evil\nv2\n"), evil), bot.Sign)
		}, false},
		"a merge": {func(r *repo, root string) string {
			evil := r.commit("evil", base.with("go.sum", "evil\n"), root)
			return r.signed(r.commit("one", base.with("go.sum", "evil\n"), root, evil), bot.Sign)
		}, false},
		"a merge of nothing": {func(r *repo, root string) string {
			return r.commit("one", base, root, r.commit("evil", base.with("go.sum", "evil\n"), root))
		}, false},
	} {
		r := newRepo(t)
		root := r.commit("root", base)
		tip := c.make(r, root)
		o := r.options()
		o.Default = []string{root}
		got, err := explain.Run(t.Context(), o, explain.Between([]code.BranchCommit{}, root, tip))
		r.check(err)
		if _, is := got.Explained[tip]; is != c.want {
			t.Errorf("%s: %+v %+v", name, got.Explained[tip], got.Unexplained[tip])
		}
	}
}
