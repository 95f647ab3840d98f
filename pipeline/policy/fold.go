package policy

import "github.com/countersign-dev/countersign/pipeline/patch"

// fold is a name as file systems that ignore case and Unicode form compare it,
// so that a file which some clone takes for a protected one is protected (T35):
// Claude.MD, and worKflows with the Kelvin sign for a K.
func fold(s string) string { return patch.Fold(s) }
