package gitstore_test
import ("testing";"time";"fmt";"github.com/countersign-dev/countersign/gitstore";"github.com/countersign-dev/countersign/pipeline";"github.com/countersign-dev/countersign/pipeline/patch")
func BenchmarkPhases(b *testing.B) {
	dir, diff := manyFiles(b)
	for range b.N { b.StopTimer(); mine := copyRepo(b, dir); b.StartTimer()
		t:=time.Now(); lap:=func(s string){ fmt.Printf("%s %.1f  ", s, float64(time.Since(t).Microseconds())/1000); t=time.Now()}
		ctx := b.Context()
		repo, _ := gitstore.Open(mine); lap("open")
		head, _ := repo.Head(ctx); lap("head")
		tree, _ := repo.Tree(ctx, head); lap("tree")
		parsed, err := patch.Parse(append(diff, '\n')); if err!=nil{b.Fatal(err)}; lap("parse")
		set, err := parsed.Resolve(tree);if err!=nil{b.Fatal(err)}; lap("resolve")
		fs:=set.Files();  lap("files")
		commit, err := repo.BuildCommit(ctx, head, fs, pipeline.Commit{Author: "t", Email: "t@localhost", Message: "x\n"}); if err!=nil{b.Fatal(err)}; lap("build")
		repo.MoveRef(ctx, "refs/heads/fixes", "", commit); lap("move"); fmt.Println()
	}
}
