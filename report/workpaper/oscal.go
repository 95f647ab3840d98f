package workpaper

import (
	"crypto/sha1" // what RFC 9562 makes ids of version 5 with
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

// oscalVersion is the one of NIST's OSCAL whose assessment results [OSCAL] writes.
const oscalVersion = "1.1.3"

// oscalNames is the namespace of the properties, which are the columns of [CSV] and what the report says of itself, and of the ids.
const oscalNames = "urn:countersign:oscal:1"

// A statement is one of NIST SP 800-53 (revision 5) that exceptions speak against (kind.against), with what it asks for in our words.
type statement struct{ id, asks string }

// controls are the statements by their controls.
var controls = []struct {
	id         string
	statements []statement
}{
	{"cm-3", []statement{
		{"cm-3_smt.b", "Changes are reviewed, and approved or not."},
		{"cm-3_smt.d", "What was approved is put in place."},
		{"cm-3_smt.e", "Records of changes are kept."},
		{"cm-3_smt.f", "What is done about changes is watched and reviewed."},
	}},
	{"cm-3.2", []statement{{"cm-3.2_smt", "Changes are tested before they are put in place."}}},
	{"ac-5", []statement{{"ac-5_smt.b", "Rights are such that duties are separated."}}},
}

type object = map[string]any

// OSCAL is a report as assessment results of OSCAL 1.1.3: an observation for each row, and a finding for each statement
// of NIST SP 800-53 that one has an exception of. It says of none that it is satisfied: that is for people to judge.
// The pages and raw, which is the report's own JSON document, lie beside it.
// https://pages.nist.gov/OSCAL/resources/concepts/layer/assessment/assessment-results/
func OSCAL(r evidence.Report, raw []byte, version string) map[string]any {
	o := oscal{r, canon.Hex(raw), repositoryPages(r)}
	means := "Each change of the period by the record of its approval, and what is not as it should be."
	if !r.Complete {
		means = "This is not all: of a repository it cannot be told what changed. " + means
	}
	result := object{
		"uuid": o.id("result", o.sum), "title": "Changes from " + r.From + " to " + r.To, "start": r.MadeAt, "description": means,
		"remarks": "A statement without a finding has not been judged: that nothing is known that speaks against it does not satisfy it.",
		"props":   append(props([]string{"from", "to", "ok", "complete"}, []string{r.From, r.To, fmt.Sprint(r.OK), fmt.Sprint(r.Complete)}), props([]string{"note"}, r.Notes)...),
		"reviewed-controls": object{
			"description": "Statements of NIST SP 800-53, revision 5, that exceptions speak against.", "control-selections": []any{object{"include-controls": reviewed()}},
		},
		"local-definitions": o.definitions(version),
	}
	for name, list := range map[string][]any{"observations": o.observations(), "findings": o.findings()} {
		if len(list) > 0 {
			result[name] = list
		}
	}
	plan := o.id("plan", "")
	return object{"assessment-results": object{
		"uuid":      o.id("document", o.sum),
		"metadata":  object{"title": "Evidence of changes", "last-modified": r.MadeAt, "version": r.MadeAt, "oscal-version": oscalVersion},
		"import-ap": object{"href": "#" + plan}, "results": []any{result},
		"back-matter": object{"resources": []any{
			object{"uuid": o.id("report", o.sum), "title": "The report", "rlinks": []any{object{"href": evidence.ReportFile, "media-type": "application/json", "hashes": []any{object{"algorithm": "SHA-256", "value": o.sum}}}}},
			object{"uuid": plan, "title": "No assessment plan was given", "description": "countersign's documentation of its command evidence says what is examined, and how."},
		}},
	}}
}

// An oscal is a report with its hash, and the pages of its repositories.
type oscal struct {
	evidence.Report
	sum string
	at  map[string]string
}

// id is the UUID of a thing of some kind, the same in each report: of version 5, in the namespace of URLs (RFC 9562, 5.5 and 6.6).
func (o oscal) id(kind, name string) string {
	b := sha1.Sum([]byte("\x6b\xa7\xb8\x11\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8" + oscalNames + "\n" + kind + "\n" + name))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func (o oscal) rowID(row evidence.Row) string {
	return o.id("row", fmt.Sprintf("%q %s %v", row.Repository, row.Commit, row.Commit == "" && row.Of(evidence.BeforeLedger)))
}

// definitions are the tool, and the repositories.
func (o oscal) definitions(version string) object {
	tool := component(o.id("tool", ""), "countersign", "It made the report, of the ledger and the branch as they were then.")
	tool["props"] = []any{object{"name": "version", "value": version}}
	all := object{"assessment-assets": object{
		"components":           []any{tool},
		"assessment-platforms": []any{object{"uuid": o.id("platform", ""), "uses-components": []any{object{"component-uuid": tool["uuid"]}}}},
	}}
	var repositories []any
	for _, repo := range o.Repositories {
		means := "A repository whose changes were examined."
		if !repo.Read {
			means = "A repository of which it cannot be told what changed."
		}
		repositories = append(repositories, component(o.id("repository", repo.Name), named(repo.Name), means))
	}
	if len(repositories) > 0 {
		all["components"] = repositories
	}
	return all
}

// named is a repository in a title, which is markup.
func named(repository string) string { return "Repository " + escape.Name(repository) }

func component(id, title, means string) object {
	return object{"uuid": id, "type": "software", "title": title, "description": means, "status": object{"state": "operational"}}
}

// props are foreign texts as properties, whose values are no markup. What says nothing is left out.
func props(names, values []string) (all []any) {
	for i, value := range values {
		if value = ledger.OneLine(value, len(value)); value != "" {
			all = append(all, object{"name": strings.ReplaceAll(names[i%len(names)], " ", "-"), "ns": oscalNames, "value": value})
		}
	}
	return all
}

func (o oscal) observations() (all []any) {
	for i, row := range o.Rows {
		title, means := named(row.Repository), "Nothing is known that speaks against it."
		if row.Commit != "" {
			title = "Change " + short(row.Commit)
		}
		if len(row.Exceptions) > 0 {
			means = view.Joined(row.Exceptions, ". ", func(e evidence.Exception) string { return kinds[e.Code].title }) + "."
		}
		proof := []any{object{"description": "The row of the report", "href": fmt.Sprintf("%s#row-%d", o.at[row.Repository], i+1)}}
		if at, err := url.Parse(row.URL); err == nil && (at.Scheme == "https" || at.Scheme == "http") && at.Host != "" && !strings.ContainsAny(at.String(), " \"<>|\\^`{}") {
			proof = append(proof, object{"description": "The commit", "href": at.String()})
		}
		all = append(all, object{
			"uuid": o.rowID(row), "title": title, "description": means, "methods": []any{"EXAMINE"}, "types": []any{"control-objective"},
			"collected": o.MadeAt, "origins": []any{object{"actors": []any{object{"type": "tool", "actor-uuid": o.id("tool", "")}}}},
			"subjects": []any{object{"type": "component", "subject-uuid": o.id("repository", row.Repository)}}, "relevant-evidence": proof,
			"props": props(Columns, cells(row)),
		})
	}
	return all
}

// unknown are the exceptions that say no more than that something is not known.
var unknown = []evidence.Code{evidence.Unreadable, evidence.BeforeLedger, evidence.UnknownPolicy, evidence.CannotTell, evidence.UnknownIndependence}

// findings are the statements that some row has an exception of, whether or not somebody has reviewed it.
func (o oscal) findings() (all []any) {
	for _, c := range controls {
		for _, s := range c.statements {
			var related []any
			reason := "other"
			for _, row := range o.Rows {
				against := slices.DeleteFunc(slices.Clone(row.Exceptions), func(e evidence.Exception) bool { return kinds[e.Code].against != s.id })
				if len(against) > 0 {
					related = append(related, object{"observation-uuid": o.rowID(row)})
				}
				if slices.ContainsFunc(against, func(e evidence.Exception) bool { return !slices.Contains(unknown, e.Code) }) {
					reason = "fail"
				}
			}
			if len(related) > 0 {
				all = append(all, object{
					"uuid": o.id("finding "+s.id, o.sum), "title": "Not shown: " + s.asks, "description": ledger.Plural(len(related), "row speaks", "rows speak") + " against it.", "related-observations": related,
					"target": object{"type": "statement-id", "target-id": s.id, "status": object{"state": "not-satisfied", "reason": reason}},
				})
			}
		}
	}
	return all
}

func reviewed() (all []any) {
	for _, c := range controls {
		var ids []any
		for _, s := range c.statements {
			ids = append(ids, s.id)
		}
		all = append(all, object{"control-id": c.id, "statement-ids": ids})
	}
	return all
}
