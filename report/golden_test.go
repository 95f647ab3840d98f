package report_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/report"
)

var update = flag.Bool("update", false, "write testdata anew")

func checkText(c forge.Check) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ntitle: %s\nstatus: %s\nconclusion: %s\nexternal id: %s\n", c.Name, c.Title, c.Status, c.Conclusion, c.ExternalID)
	for _, a := range c.Annotations {
		fmt.Fprintf(&b, "annotation: %s:%d-%d %s: %s: %s\n", a.Path, a.StartLine, a.EndLine, a.Level, a.Title, a.Message)
	}
	return b.String() + "\n" + c.Summary + "\n----\n\n" + c.Text
}

// golden are all documents of this package: testdata has them as people see them.
func golden() map[string]string {
	withheld := guard(gateOnly(approval.Approved))
	withheld.Siblings = []report.Sibling{{PullRequest: 13, Base: "release/1", Reason: "0 of 1 approvals"}}
	unread := guard(gateOnly(approval.Approved))
	unread.Errors, unread.Dedicated = []string{"reading pull request 12: 502 Bad Gateway"}, true
	cut := request()
	cut.Diff = append(cut.Diff, strings.Repeat("+line\n", 20000)...)
	docs := map[string]string{
		"check-pending.md": checkText(proposal().CheckRun()), "check-applied.md": checkText(applied().CheckRun()),
		"check-failed.md": checkText(failed().CheckRun()), "check-denied.md": checkText(denied().CheckRun()),
		"check-drifted.md": checkText(drifted().CheckRun()),
		"check-glass.md":   checkText(glass().CheckRun()),
		"guard-pending.md": checkText(guard(gateOnly(approval.Pending)).CheckRun()), "guard-withheld.md": checkText(withheld.CheckRun()),
		"guard-denied.md": checkText(guard(gateOnly(approval.Pending), gateOnly(approval.Denied)).CheckRun()),
		"guard-unread.md": checkText(unread.CheckRun()), "guard-approved.md": checkText(guard(gateOnly(approval.Approved)).CheckRun()),
		"request.md": request().Body(), "request-demanding.md": demanding().Body(),
		"request-picture.md": picture().Body(), "comment.md": comment().Body(),
		"text.txt": text(failed(), report.Style{Zone: time.FixedZone("CET", 3600)}) + "\n" + text(glass(), report.Style{}) + "\n" + text(gateOnly(approval.Pending), report.Style{}) + "\n" + text(drifted(), report.Style{}),
	}
	head, tail, _ := strings.Cut(cut.Body(), "<details>")
	docs["request-cut.md"] = head + tail[strings.LastIndex(tail, "+line\n")+len("+line\n"):]
	return docs
}

func TestGolden(t *testing.T) {
	for name, got := range golden() {
		if strings.HasPrefix(name, "request") || name == "comment.md" {
			checkShown(t, name, got)
		}
		checkGolden(t, name, got)
	}
}

// checkGolden holds a text to a file of testdata.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		check(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	check(t, err)
	if got != string(want) {
		t.Errorf("%s differs; run go test -update and read the difference\n%s", name, got)
	}
}
