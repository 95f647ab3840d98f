package ledger

// The types of an item that the rules look into (turn item schema 0.1).
const (
	FileChange       = "fileChange"
	CommandExecution = "commandExecution"
)

// CommandItem is turn/item for a command that was run: the events have one type,
// what an item holds goes by its own.
type CommandItem struct {
	TransactionID string  `json:"transaction_id"`
	TurnID        string  `json:"turn_id"`
	Item          Command `json:"item"`
}

// Type is turn/item.
func (*CommandItem) Type() Type { return TypeTurnItem }

// A Command is an item of type "commandExecution". CWD is inside the tree that
// it ran on; AggregatedOutput is for display, the artifact has more.
type Command struct {
	ID               string          `json:"id"`
	Type             string          `json:"type"`
	Op               string          `json:"op"`
	Status           string          `json:"status"`
	Command          string          `json:"command"`
	CWD              string          `json:"cwd"`
	AggregatedOutput string          `json:"aggregatedOutput"`
	ExitCode         int             `json:"exitCode"`
	DurationMS       int             `json:"durationMs"`
	Metadata         CommandMetadata `json:"metadata"`
}

// follows reports whether the item is one of turn item schema 0.1. A command is
// recorded once it has ended, and has an artifact then (I12).
func (c Command) follows() bool {
	return c.ID != "" && (c.Status == ItemCompleted || c.Status == ItemFailed)
}

// CommandMetadata names the evidence and says what the outcome decided. Tree is
// the Git tree that the command ran on; When is "before" or "after" the apply.
type CommandMetadata struct {
	Artifact ArtifactRef `json:"artifact"`
	Required bool        `json:"required"`
	Tree     string      `json:"tree"`
	When     string      `json:"when"`
}

// An ArtifactRef names an artifact of the same transaction.
type ArtifactRef struct {
	ArtifactID string `json:"artifact_id"`
	Path       string `json:"path"`
}
