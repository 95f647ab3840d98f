package ledger

// A risksDoc is the artifact of kind KindRisks, as package risk writes it.
type risksDoc struct {
	Schema  string         `json:"schema"`
	PatchID string         `json:"patch_id"`
	More    map[string]int `json:"more"`
	Risks   []riskEntry    `json:"risks"`
}

type riskEntry struct {
	Kind   string `json:"kind"`
	Path   string `json:"path"`
	From   string `json:"from,omitempty"`
	Lines  []int  `json:"lines,omitempty"`
	More   int    `json:"more,omitempty"`
	Detail string `json:"detail,omitempty"`
}
