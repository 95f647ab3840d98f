package explain

// An Outcome is what came of one check.
type Outcome string

// The outcomes. A check that could not be made is unknown and never good.
const (
	Good          Outcome = "good"
	Bad           Outcome = "bad"
	NotRecomputed Outcome = "unknown"
)

// A Check is one thing that a verifier looked at. What is a word: "signature", "subject",
// "change", "record" or "once".
type Check struct {
	What    string  `json:"what"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message"`
}
