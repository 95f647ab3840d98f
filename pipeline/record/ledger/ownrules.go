package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// ownRules checks what a log that folds and the files of its directory promise.
func (c *checker) ownRules() {
	c.evidence()
	c.oneProposal()
	c.artifacts()
	c.risks()
	c.again()
	c.patches()
	c.result()
	c.findings()
	c.shape()
}

func (c *checker) artifacts() {
	for _, a := range Of[*ArtifactStored](c.log) {
		raw, err := c.read(a.Path)
		if err != nil {
			continue // I10 says so
		}
		sum := canon.Hex(raw)
		if "sha256:"+sum != a.StoredSHA256 || sum != a.ArtifactID || a.Path != ArtifactFile(a.ArtifactID) {
			c.Add("L4", a.Path, "content does not hash to its artifact_id")
		}
		if a.ContentType == "application/json" && !canon.IsLine(raw) {
			c.Add("L7", a.Path, "not canonical JSON and one LF")
		}
		if err = canon.CheckDocument("it", raw); err != nil && slices.Contains(kinds, a.Kind) {
			c.Add("L4", a.Path, "%v", err)
			c.newer = c.newer || errors.As(err, new(*canon.NewerError))
		}
	}
}

// kinds are those of artifacts that this program knows (docs/spec/names.md): what others say, a reader ignores (V9).
var kinds = strings.Fields("advice apply checks command decision deployment disposition drift findings key merge policy posted proposal proposed_again proposed_elsewhere risks settings signature standing statement trace validation")

// risks: what people are shown first is recorded once, and is about the patch's
// own files.
func (c *checker) risks() {
	p := c.log.Transaction().Pointers.Proposal
	for i, a := range c.log.Artifacts(KindRisks) {
		if i > 0 {
			c.Add("L20", a.Path, "the risks are recorded a second time")
		}
		if !c.exists(a.Path) {
			continue // I10 says so
		}
		var doc risksDoc
		err := ReadDocument(c.dir, a.Path, &doc)
		switch {
		case err != nil:
			c.Add("L20", a.Path, "is no list of risks: %v", errors.Unwrap(err))
		case doc.Schema != RisksSchema:
			c.Add("L20", a.Path, "its schema is %s", show(doc.Schema))
		case p == nil || doc.PatchID != p.PatchID:
			c.Add("L20", a.Path, "lists the risks of another patch, %s", show(doc.PatchID))
		}
		for _, r := range doc.Risks {
			for _, name := range []string{r.Path, r.From} {
				if name != "" && p != nil && !slices.Contains(p.TargetFiles, name) {
					c.Add("L20", a.Path, "names %s, which the patch does not change", show(name))
				}
			}
		}
	}
}

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

// patches: what is stored of a patch is the patch, or what the proposal says
// is stored in its place.
func (c *checker) patches() {
	same := func(a, b *Proposal) bool {
		return a.PatchID == b.PatchID && a.PatchRedactedSHA256 == b.PatchRedactedSHA256 && a.PatchSealedSHA256 == b.PatchSealedSHA256
	}
	for _, p := range slices.CompactFunc(proposals(c.log), same) {
		want := cmp.Or(p.PatchRedactedSHA256, "sha256:"+p.PatchID)
		if raw, err := c.read(PatchFile(p.PatchID)); err == nil && canon.Sum(raw) != want {
			c.Add("L5", PatchFile(p.PatchID), "content does not hash to its patch_id")
		} else if err == nil {
			c.describes(raw, p)
		}
		if p.PatchSealedSHA256 == "" {
			continue
		}
		if raw, err := c.read(SealedFile(p.PatchID)); err != nil || canon.Sum(raw) != p.PatchSealedSHA256 {
			c.Add("L5", SealedFile(p.PatchID), "is not the sealed patch that was recorded")
		}
	}
}

// proposals are a log's proposals as they were at each moment.
func proposals(log *Log) []*Proposal {
	var out []*Proposal
	for _, it := range Of[*TurnItem](log) {
		if it.Item.Metadata != nil && it.Item.Metadata.PatchID != "" {
			out = append(out, it.Item.Metadata)
		}
	}
	return out
}

// result: apply_result.json is a valid ApplyResult, and it is the one that the
// successful apply's artifact holds.
func (c *checker) result() {
	var done *ApplyComplete
	for _, p := range Of[*ApplyComplete](c.log) {
		if p.Success {
			done = p
		}
	}
	raw, err := c.read(ResultFile)
	switch {
	case done == nil && err == nil:
		c.Add("L6", ResultFile, "no successful apply is recorded")
		return
	case done == nil:
		return
	case err != nil:
		c.Add("L6", ResultFile, "is missing")
		return
	}
	if !canon.IsLine(raw) {
		c.Add("L7", ResultFile, "not canonical JSON and one LF")
		return
	}
	res, err := ParseResult(raw)
	if err == nil {
		err = res.Check()
	}
	if err != nil {
		c.Add("L6", ResultFile, "%v", err)
	}
	if p := c.log.Transaction().Pointers.Proposal; p != nil && !fits(res, *p) {
		c.Add("L6", ResultFile, "does not report the files and hashes that were approved")
	}
	if string(res.Outcome) != done.Outcome || !c.holdsResult(done.ApplyArtifact, raw) {
		c.Add("L6", ResultFile, "is not the result that apply/complete recorded")
	}
}

// findings: a validate that did not succeed names an artifact that was recorded before
// it, with what it found.
func (c *checker) findings() {
	for i, p := range c.log.Payloads() {
		v, ok := p.(*ValidateComplete)
		if !ok || v.Success {
			continue
		}
		stored := slices.ContainsFunc(c.log.Payloads()[:i], func(p Payload) bool {
			a, ok := p.(*ArtifactStored)
			return ok && a.Kind == KindFindings && a.Path == v.Findings
		})
		if !stored {
			c.Add("L6", atLine(i+1), "what it found was not recorded before it")
		} else if _, err := ReadFindings(c.dir, v.Findings); err != nil {
			c.Add("L6", v.Findings, "what a validate found cannot be read: %v", err)
		}
	}
}

// fits reports whether a successful result is about exactly the proposal's files,
// with the hashes that were approved.
func fits(res ApplyResult, p Proposal) bool {
	if res.Source != p.Source() || len(res.Operations) != len(p.TargetFiles) {
		return false
	}
	for _, op := range res.Operations {
		before, known := p.BaseSHA256[op.Path]
		if !known || !sameHash(op.BeforeHash, before) || !sameHash(op.AfterHash, p.AfterSHA256[op.Path]) {
			return false
		}
	}
	return true
}

func sameHash(a, b *string) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

// holdsResult reports whether an artifact has a result, as it is written in raw.
func (c *checker) holdsResult(artifact string, raw []byte) bool {
	stored, err := c.read(artifact)
	if err != nil {
		return false
	}
	doc, err := canon.Parse(stored)
	if err != nil {
		return false
	}
	fields, _ := doc.(map[string]any)
	recorded, err := canon.Line(fields["apply_result"])
	return err == nil && bytes.Equal(recorded, raw)
}

// shape: nothing but the files that the events account for. What is in the place of the page, no rule looks at.
func (c *checker) shape() {
	known := map[string]bool{TransactionFile: true, EventsFile: true, ResultFile: true}
	if c.log != nil {
		for _, p := range proposals(c.log) {
			known[PatchFile(p.PatchID)] = true
			if p.PatchSealedSHA256 != "" {
				known[SealedFile(p.PatchID)] = true
			}
		}
		for _, a := range Of[*ArtifactStored](c.log) {
			known[a.Path] = true
		}
	}
	for name, mode := range c.files {
		dir := name == "patches" || name == "artifacts"
		plain := mode.IsRegular() && !(c.modes && mode&0o111 != 0)
		if mode.IsDir() != dir || !dir && (!plain || c.log != nil && !known[name]) {
			c.Add("L10", name, "is not accounted for by the events")
		}
	}
	if c.parts {
		c.Add("L10", ".", "cannot be read whole")
	}
}
