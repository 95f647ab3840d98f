package workpaper

import "github.com/countersign-dev/countersign/report/template/templatetest"

// In tests every template is held to fit what it is filled in with, in all of its branches.
var _ = []any{templatetest.Check(templates()), templatetest.Check(lines())}
