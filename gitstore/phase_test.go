package gitstore_test
import ("testing";"github.com/countersign-dev/countersign/gitstore";"github.com/countersign-dev/countersign/pipeline";"github.com/countersign-dev/countersign/pipeline/patch")
func BenchmarkPhases(b *testing.B) {
	dir, diff := manyFiles(b)
	mine := copyRepo(b, dir)
		ctx := b.Context()
		repo, _ := gitstore.Open(mine)
		head, _ := repo.Head(ctx)
		tree, _ := repo.Tree(ctx, head)
		parsed, err := patch.Parse(append(diff, '\n')); if err!=nil{b.Fatal(err)}
		set, err := parsed.Resolve(tree);if err!=nil{b.Fatal(err)}
		fs:=set.Files()
	b.Run("build", func(b *testing.B) { for range b.N {
		_, err := repo.BuildCommit(ctx, head, fs, pipeline.Commit{Author: "t", Email: "t@localhost", Message: "x\n"}); if err!=nil{b.Fatal(err)}
	}})
	b.Run("resolve", func(b *testing.B) { for range b.N {
		repo, _ := gitstore.Open(mine)
		tree, _ := repo.Tree(ctx, head)
		parsed.Resolve(tree)
	}})
}
