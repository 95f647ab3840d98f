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
)

// oscalVersion is the one of NIST's OSCAL whose assessment results [OSCAL] writes.
const oscalVersion = "1.1.3"

// oscalNames is the namespace of the properties: those are the columns of [CSV].
const oscalNames = "https://github.com/countersign-dev/countersign/docs/evidence.md"

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
	{"ac-5", []statement{{"ac-5_smt.b", "Duties are separated."}}},
}

type object = map[string]any

// OSCAL is a report as assessment results of OSCAL 1.1.3: an observation for each row, and a finding for each statement
// of NIST SP 800-53 that one has an exception of. It says of none that it is satisfied: that is for people to judge.
// The pages and raw, which is the report's own JSON document, lie beside it.
// https://pages.nist.gov/OSCAL/resources/concepts/layer/assessment/assessment-results/
func OSCAL(r evidence.Report, raw []byte, version string) map[string]any {
	o := oscal{Report: r, sum: canon.Hex(raw), at: repositoryPages(r)}
	tool, source, plan := o.id("tool"), o.id("report"), o.id("plan")
	result := object{
		"uuid": o.id("result"), "title": "Changes from " + r.From + " to " + r.To, "start": r.MadeAt,
		"description":       "Each change of the period by the record of its approval, and what is not as it should be.",
		"reviewed-controls": object{"control-selections": []any{object{"include-controls": reviewed()}}},
		"local-definitions": object{
			"assessment-assets": object{
				"components":           []any{component(tool, "countersign", "It made the report, of the ledger and the branch as they were then.", version)},
				"assessment-platforms": []any{object{"uuid": o.id("platform"), "uses-components": []any{object{"component-uuid": tool}}}},
			},
		},
	}
	if len(r.Repositories) > 0 {
		result["local-definitions"].(object)["components"] = o.repositories()
	}
	for name, list := range map[string][]any{"props": props([]string{"note"}, r.Notes), "observations": o.observations(tool), "findings": o.findings()} {
		if len(list) > 0 {
			result[name] = list
		}
	}
	return object{"assessment-results": object{
		"uuid":      o.id("document"),
		"metadata":  object{"title": "Evidence of changes", "last-modified": r.MadeAt, "version": r.MadeAt, "oscal-version": oscalVersion},
		"import-ap": object{"href": "#" + plan}, "results": []any{result},
		"back-matter": object{"resources": []any{
			object{"uuid": source, "title": "The report", "rlinks": []any{object{"href": evidence.ReportFile, "media-type": "application/json", "hashes": []any{object{"algorithm": "SHA-256", "value": o.sum}}}}},
			object{"uuid": plan, "title": "No assessment plan was given", "description": "What was examined, and how, is in " + oscalNames},
		}},
	}}
}

// An oscal is a report with the hash that all ids are made of, and the pages of its repositories.
type oscal struct {
	evidence.Report
	sum string
	at  map[string]string
}

// id is a UUID of version 5 (RFC 9562), of the report and a name within it.
func (o oscal) id(name string) string {
	b := sha1.Sum([]byte(oscalNames + "\n" + o.sum + "\n" + name))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// named is a repository in a title, which is markup.
func named(repository string) string { return "Repository " + escape.Name(repository) }

// component is a part of what was examined, or the tool.
func component(id, name, means string, versions ...string) object {
	c := object{"uuid": id, "type": "software", "title": name, "description": means, "status": object{"state": "operational"}}
	for _, version := range versions {
		c["props"] = []any{object{"name": "version", "value": version}}
	}
	return c
}

func (o oscal) repositories() (all []any) {
	for i, repo := range o.Repositories {
		all = append(all, component(o.id(fmt.Sprint("repository ", i)), named(repo.Name), "A repository whose changes were examined."))
	}
	return all
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

func (o oscal) observations(tool string) (all []any) {
	for i, row := range o.Rows {
		title, means := named(row.Repository), "Nothing is known that speaks against it."
		proof := []any{object{"description": "The row of the report", "href": fmt.Sprintf("%s#row-%d", o.at[row.Repository], i+1)}}
		if row.Commit != "" {
			title = "Change " + short(row.Commit)
		}
		if at, err := url.Parse(row.URL); err == nil && (at.Scheme == "https" || at.Scheme == "http") {
			proof = append(proof, object{"description": "The commit", "href": at.String()})
		}
		for j, e := range row.Exceptions {
			if j == 0 {
				means = ""
			}
			means = strings.TrimSpace(means + " " + kinds[e.Code].title + ".")
		}
		about := slices.IndexFunc(o.Repositories, func(repo evidence.Repository) bool { return repo.Name == row.Repository })
		all = append(all, object{
			"uuid": o.id(fmt.Sprint("row ", i)), "title": title, "description": means, "methods": []any{"EXAMINE"}, "types": []any{"control-objective"},
			"collected": o.MadeAt, "origins": []any{object{"actors": []any{object{"type": "tool", "actor-uuid": tool}}}},
			"subjects": []any{object{"type": "component", "subject-uuid": o.id(fmt.Sprint("repository ", about))}}, "relevant-evidence": proof,
			"props": props(Columns, cells(row)),
		})
	}
	return all
}

// findings are the statements that some row has an exception of, whether or not somebody has reviewed it.
func (o oscal) findings() (all []any) {
	for _, c := range controls {
		for _, s := range c.statements {
			var related []any
			for i, row := range o.Rows {
				if slices.ContainsFunc(row.Exceptions, func(e evidence.Exception) bool { return kinds[e.Code].against == s.id }) {
					related = append(related, object{"observation-uuid": o.id(fmt.Sprint("row ", i))})
				}
			}
			if len(related) > 0 {
				all = append(all, object{
					"uuid": o.id(s.id), "title": s.asks, "description": ledger.Plural(len(related), "row speaks", "rows speak") + " against it.", "related-observations": related,
					"target": object{"type": "statement-id", "target-id": s.id, "status": object{"state": "not-satisfied"}},
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
