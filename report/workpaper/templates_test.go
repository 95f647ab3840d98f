package workpaper

import "github.com/countersign-dev/countersign/report/pagetest"

// In tests every template is held to fit what it is filled in with, in all of its branches.
var _ = []any{pagetest.CheckTemplates(templates()), pagetest.CheckTemplates(lines())}
