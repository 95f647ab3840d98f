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
// "commandExecution" Command and what follows it. The pointers are to what an
// item of its type must have, also when it is empty. Texts are for display and
// cut; the artifact has all.
type TraceStep struct {
	ID               string        `json:"id"`
	Type             string        `json:"type"`
	Op               string        `json:"op"`
	Status           string        `json:"status,omitempty"`
	Content          *string       `json:"content,omitempty"`
	Summary          *string       `json:"summary,omitempty"`
	Steps            []Step        `json:"steps,omitempty"`
	Server           *string       `json:"server,omitempty"`
	Tool             *string       `json:"tool,omitempty"`
	Command          *string       `json:"command,omitempty"`
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

// Said is the text that the item is about, "" for a plan.
func (i TraceStep) Said() string {
	for _, text := range []*string{i.Command, i.Tool, i.Summary, i.Content} {
		if text != nil {
			return *text
		}
	}
	return ""
}

// follows reports whether the item is one of turn item schema 0.1.
func (i TraceStep) follows() bool {
	has := map[string]bool{
		"agentMessage": i.Content != nil, "reasoning": i.Summary != nil, "plan": len(i.Steps) > 0,
		"mcpToolCall": i.Server != nil && i.Tool != nil, CommandExecution: i.Command != nil && i.Status != "",
	}
	return i.ID != "" && has[i.Type] && isItemStatus(i.Status) && areSteps(i.Steps)
}

// isTrace reports whether an item may be one of a trace.
func (i TraceStep) isTrace() bool {
	return i.Metadata.Source == SourceTrace && slices.Contains(traceTypes, i.Type)
}
