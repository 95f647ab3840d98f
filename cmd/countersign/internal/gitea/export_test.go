package gitea

import "testing"

// SetPageSize makes pages small until the test ends.
func SetPageSize(t *testing.T, n int) {
	before := pageSize
	t.Cleanup(func() { pageSize = before })
	pageSize = n
}
