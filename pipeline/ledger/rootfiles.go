package ledger

import "fmt"

// Readme is README.md, the same in every ledger.
func Readme() []byte { return []byte(readme) }

// Schema is ledger.json of a ledger whose first event has this timestamp.
func Schema(createdAt string) []byte {
	return fmt.Appendf(nil, "{\"created_at\":%q,\"schema_version\":\"1\"}\n", createdAt)
}
