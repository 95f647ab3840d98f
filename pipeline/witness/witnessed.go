package witness

import "time"

// Witnessed is what witnesses say of a ledger (docs/witnesses.md). Origin is the name that they know
// it by. Of its commits, Covered are vouched for by as many of them as are needed, up to the commit
// Commit; Newer are newer. Ignored is why checkpoints that are kept did not count.
type Witnessed struct {
	Origin    string      `json:"origin"`
	Covered   int64       `json:"covered"`
	Commit    string      `json:"commit"`
	Newer     int64       `json:"newer"`
	Witnesses []Testimony `json:"witnesses"`
	Ignored   []string    `json:"ignored"`
}

// A Testimony is what one witness says: it vouches for so many Commits, 0 for none, since a time. Asked is what came of asking it whether it has seen more, "" if it was not.
type Testimony struct {
	Name    string `json:"name"`
	Commits int64  `json:"commits"`
	At      string `json:"at"`
	Asked   string `json:"asked"`
}

// FormatTime is a time in seconds since 1970 in RFC 3339, "" for none.
func FormatTime(at int64) string {
	if at == 0 {
		return ""
	}
	return time.Unix(at, 0).UTC().Format(time.RFC3339)
}
