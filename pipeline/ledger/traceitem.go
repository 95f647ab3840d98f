package ledger

import "slices"

// SourceTrace marks an item that is the proposer's word: nothing here ran it, or
// saw it.
const SourceTrace = "trace"

// traceTypes are the types of item that a trace can tell of.
var traceTypes = []string{"agentMessage", "reasoning", "plan", "mcpToolCall", CommandExecution}

// TraceItem is turn/item for one step of what a proposer says it did before it
// proposed.
type TraceItem struct {
	TransactionID string    `json:"transaction_id"`
	TurnID        string    `json:"turn_id"`
	Item          TraceStep `json:"item"`
}

// Type is turn/item.
func (*TraceItem) Type() Type { return TypeTurnItem }

// A TraceStep is an item whose fields go by its Type: "agentMessage" has
// Content, "reasoning" Summary, "plan" Steps, "mcpToolCall" Server and Tool,
// "commandExecution" Command and what follows it. Texts are for display and cut;
// the artifact has all.
type TraceStep struct {
	ID               string        `json:"id"`
	Type             string        `json:"type"`
	Op               string        `json:"op"`
	Status           string        `json:"status,omitempty"`
	Content          string        `json:"content,omitempty"`
	Summary          string        `json:"summary,omitempty"`
	Steps            []Step        `json:"steps,omitempty"`
	Server           string        `json:"server,omitempty"`
	Tool             string        `json:"tool,omitempty"`
	Command          string        `json:"command,omitempty"`
	CWD              string        `json:"cwd,omitempty"`
	AggregatedOutput string        `json:"aggregatedOutput,omitempty"`
	ExitCode         *int          `json:"exitCode,omitempty"`
	DurationMS       *int          `json:"durationMs,omitempty"`
	Metadata         TraceMetadata `json:"metadata"`
}

// TraceMetadata says where a step stands in the trace: Step counts from 1, Steps
// is how many there are. Source is SourceTrace.
type TraceMetadata struct {
	Artifact  ArtifactRef `json:"artifact"`
	Source    string      `json:"source"`
	Step      int         `json:"step"`
	Steps     int         `json:"steps"`
	StartedAt string      `json:"started_at,omitempty"`
	EndedAt   string      `json:"ended_at,omitempty"`
}

// isTrace tells whether an item may be one of a trace.
func (i TraceStep) isTrace() bool {
	return i.Metadata.Source == SourceTrace && slices.Contains(traceTypes, i.Type)
}
