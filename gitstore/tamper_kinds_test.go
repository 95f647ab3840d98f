package gitstore

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// tamperers do not make good all that hangs together: the rules have to tell.
var tamperers = []kind{
	{"a byte of any file, in the commit that writes it", 400, func(t *tamper) bool {
		i := t.r.IntN(len(t.steps))
		if t.r.IntN(3) > 0 {
			i = t.at()
		}
		name, _ := t.name(i, any_)
		data := bytes.Clone(t.steps[i].files[name].data)
		at, to := t.r.IntN(len(data)), byte(t.r.IntN(256))
		t.what = fmt.Sprintf("step %d, %s, byte %d to %d", i, name, at, to)
		data[at] = to // may be what it was
		t.changed(i).files[name] = file{data: data}
		return true
	}},
	{"a byte of any file, in a later commit", 150, func(t *tamper) bool {
		i := t.at()
		name, _ := t.name(t.r.IntN(i), any_)
		if t.steps[i].files[name].data != nil {
			return false
		}
		data := t.before(i, name)
		at := t.r.IntN(len(data))
		t.what = fmt.Sprintf("step %d, %s, byte %d", i, name, at)
		data[at] ^= 1 << t.r.IntN(8)
		t.changed(i).files[name] = file{data: data}
		return true
	}},
	{"a file cut short, or made longer", 60, func(t *tamper) bool {
		i := t.at()
		name, _ := t.name(i, any_)
		data := bytes.Clone(t.steps[i].files[name].data)
		if t.r.IntN(2) == 0 {
			data = data[:t.r.IntN(len(data))]
		} else {
			data = append(data, []string{"\n", " ", "{}\n", "x"}[t.r.IntN(4)]...)
		}
		t.what = fmt.Sprintf("step %d, %s, %d bytes", i, name, len(data))
		t.changed(i).files[name] = file{data: data}
		return true
	}},
	{"an event dropped", 100, events(func(t *tamper, lines [][]byte, at int) [][]byte { return slices.Delete(lines, at, at+1) })},
	{"two events exchanged", 60, func(t *tamper) bool {
		return events(func(t *tamper, lines [][]byte, at int) [][]byte {
			if at+1 < len(lines) {
				lines[at], lines[at+1] = lines[at+1], lines[at]
			} else {
				lines[at], lines[at-1] = lines[at-1], lines[at]
			}
			return lines
		})(t)
	}},
	{"an event twice", 60, events(func(t *tamper, lines [][]byte, at int) [][]byte { return slices.Insert(lines, at, lines[at]) })},
	{"an event copied from another transaction", 60, func(t *tamper) bool {
		other := t.at()
		from := slices.Collect(bytes.Lines(t.steps[other].files[ledger.Dir(t.idOf(other))+"/"+ledger.EventsFile].data))
		line := from[t.r.IntN(len(from))]
		return events(func(_ *tamper, lines [][]byte, at int) [][]byte { return slices.Insert(lines, at, line) })(t)
	}},
	{"events.jsonl exchanged with another transaction's", 30, func(t *tamper) bool {
		i, j := t.at(), t.at()
		if t.idOf(i) == t.idOf(j) {
			return false
		}
		a, b := ledger.Dir(t.idOf(i))+"/"+ledger.EventsFile, ledger.Dir(t.idOf(j))+"/"+ledger.EventsFile
		x, y := t.steps[i].files[a], t.steps[j].files[b]
		t.changed(i).files[a], t.changed(j).files[b] = y, x
		return true
	}},
	{"an event changed, the chain made good, the state not", 60, func(t *tamper) bool {
		i := t.at()
		return t.relog(i, false, func(events []ledger.Event) []ledger.Event {
			at := len(events) - 1
			events[at].Timestamp = "2026-01-05T11:00:00.000Z"
			return events
		})
	}},
	{"an approval inserted, chain and state made good", 80, func(t *tamper) bool {
		i := t.at()
		if !strings.HasPrefix(t.steps[i].message, "gate: approval asked") {
			return false
		}
		return t.relog(i, true, func(events []ledger.Event) []ledger.Event {
			at := slices.IndexFunc(events, func(e ledger.Event) bool { return e.Type == ledger.TypeRequest })
			var q ledger.ApprovalRequest
			if at < 0 || canon.Unmarshal(events[at].Payload, &q) != nil {
				return events
			}
			d := ledger.ApprovalDecision{
				TransactionID: q.TransactionID, ApprovalRequestID: q.ApprovalRequestID, Decision: ledger.Approve, Fingerprint: q.Fingerprint,
				Source: ledger.Source{Kind: "local", Author: ledger.Actor{Kind: "user", ID: "local:eve", Login: "Eve"}, CreatedAt: events[at].Timestamp},
			}
			raw, _ := canon.Marshal(&d)
			return slices.Insert(events, at+1, ledger.Event{Timestamp: events[at].Timestamp, Type: ledger.TypeDecision, Payload: raw})
		})
	}},
	{"a denial turned into an approval, chain and state made good", 40, decided("deny: ", `"decision":"deny"`, `"decision":"approve"`)},
	{"a further proposal of another patch, hash, chain and state made good", 20, again(`"patch_id":"`, `"patch_id":"0000000000000000`)},
	{"apply_result.json changed", 60, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(i, ends("/"+ledger.ResultFile))
		if !ok {
			return false
		}
		data := string(t.steps[i].files[name].data)
		edits := [][2]string{
			{`"outcome":"SUCCESS"`, `"outcome":"FAILED"`}, {`"dry_run":false`, `"dry_run":true`}, {`"bytes_written":`, `"bytes_written":1`},
			{`"op":"modify"`, `"op":"create"`}, {`"after_hash":"sha256:`, `"after_hash":"sha256:0`}, {"\n", ""}, {`{`, `{ `},
			{`"succeeded":1`, `"succeeded":2`}, {`"path":"dir/`, `"path":"Dir/`}, {`"status":"success"`, `"status":"skipped"`},
		}
		e := edits[t.r.IntN(len(edits))]
		t.what = fmt.Sprintf("step %d, %s", i, e)
		t.changed(i).files[name] = file{data: []byte(strings.Replace(data, e[0], e[1], 1))}
		return true
	}},
	{"transaction.json of an earlier version changed", 60, func(t *tamper) bool {
		i := t.at()
		name := ledger.Dir(t.idOf(i)) + "/" + ledger.TransactionFile
		data := string(t.steps[i].files[name].data)
		edits := [][2]string{
			{`"closed":false`, `"closed":true`}, {`"status":"proposed"`, `"status":"applied"`}, {`"login":"bot"`, `"login":"Ada"`},
			{`"notes":"greet`, `"notes":"Greet`}, {`"version":"0"`, `"version":"1"`}, {`"required":`, `"required":1`}, {`{`, "{\n"},
		}
		e := edits[t.r.IntN(len(edits))]
		t.changed(i).files[name] = file{data: []byte(strings.Replace(data, e[0], e[1], 1))}
		return true
	}},
	{"a file removed", 80, func(t *tamper) bool {
		i := t.at()
		name, _ := t.name(t.r.IntN(i), any_)
		if _, written := t.steps[i].files[name]; written {
			return false
		}
		t.what = fmt.Sprintf("step %d, %s", i, name)
		t.changed(i).files[name] = file{gone: true}
		return true
	}},
	{"a file missing from one commit's tree alone", 80, func(t *tamper) bool {
		i := t.at()
		name, _ := t.name(t.r.IntN(i+1), any_)
		t.what = fmt.Sprintf("step %d, %s", i, name)
		t.changed(i).tree = func(f *forge, root packfile.ID) packfile.ID { return f.without(root, name) }
		return true
	}},
	{"a file added a commit later than its event", 40, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(i, func(name string) bool { return !written(name) })
		if !ok || i+1 >= len(t.steps) {
			return false
		}
		one := t.steps[i].files[name]
		delete(t.changed(i).files, name)
		t.changed(i + 1).files[name] = one
		return true
	}},
	{"a file added a commit earlier than its event", 40, func(t *tamper) bool {
		i := t.at()
		all := t.of[t.idOf(i)]
		name, ok := t.name(i, func(name string) bool {
			return strings.HasPrefix(name, "transactions/") && !written(name)
		})
		if !ok || all[0] == i {
			return false
		}
		one := t.steps[i].files[name]
		delete(t.changed(i).files, name)
		t.changed(all[slices.Index(all, i)-1]).files[name] = one
		return true
	}},
	{"something more in a tree", 150, func(t *tamper) bool {
		i := t.at()
		id := t.idOf(i)
		dir := ledger.Dir(id)
		sum := canon.Hex([]byte(id))
		names := []string{
			"x", "transactions/x", path.Dir(dir) + "/x", path.Dir(path.Dir(dir)) + "/zz/x", dir + "/x", dir + "/patches/x.diff", dir + "/artifacts/" + sum + ".json",
			dir + "/artifacts/x/y", dir + "/apply_result.json.orig", "denied/x", "denied/" + sum[:2] + "/" + sum + "/fileChange.json",
			"proposed/" + sum[:2] + "/" + sum + "/" + id + ".json", "proposed/" + sum[:2] + "/x", "transactions/2026/01/x", "transactions/1999/01/05/" + path.Base(path.Dir(dir)) + "/" + id + "/events.jsonl",
			"README", "events.json", dir + "/patches/" + sum + ".diff", dir + "/events.jsonl~", ".gitignore", ".gitattributes", "transactions/2026/01/05/.gitkeep",
			"transactions/2026/01/05/" + sum[:2] + "/tx_01KE5W5200041061050R3GG28A/events.jsonl",
		}
		name := names[t.r.IntN(len(names))]
		if _, there := t.steps[i].files[name]; there {
			return false
		}
		t.what = fmt.Sprintf("step %d, %s", i, name)
		data := [][]byte{nil, []byte("x\n"), []byte("{}\n")}[t.r.IntN(3)]
		t.changed(i).files[name] = file{data: data, mode: []filemode.FileMode{0, 0, 0, filemode.Executable, filemode.Symlink, filemode.Submodule}[t.r.IntN(6)]}
		return true
	}},
	{"an empty directory", 30, func(t *tamper) bool {
		i := t.at()
		name := []string{"x", "transactions/2026/01/05/00/x", ledger.Dir(t.idOf(i)) + "/x", "denied/ff", "transactions/2026/02"}[t.r.IntN(5)]
		t.what = fmt.Sprintf("step %d, %s", i, name)
		t.changed(i).tree = func(f *forge, root packfile.ID) packfile.ID {
			return f.with(root, name, treeEntry{mode: filemode.Dir, id: f.put(plumbing.TreeObject, nil)})
		}
		return true
	}},
	{"a mode changed", 80, func(t *tamper) bool {
		i := t.at()
		name, _ := t.name(i, any_)
		mode := []filemode.FileMode{filemode.Executable, filemode.Symlink, filemode.Submodule, filemode.Deprecated, filemode.Dir, 0o100600}[t.r.IntN(6)]
		t.what = fmt.Sprintf("step %d, %s, %o", i, name, uint32(mode))
		one := t.steps[i].files[name]
		if mode == filemode.Dir { // the entry says so, the object is a blob
			t.changed(i).tree = func(f *forge, root packfile.ID) packfile.ID {
				return f.with(root, name, treeEntry{mode: mode, id: f.put(plumbing.BlobObject, one.data)})
			}
			return true
		}
		one.mode = mode
		t.changed(i).files[name] = one
		return true
	}},
	{"a malformed tree", 80, func(t *tamper) bool {
		i := t.at()
		dir := ledger.Dir(t.idOf(i))
		at := []string{"", "transactions", path.Dir(dir), dir, path.Dir(path.Dir(dir))}[t.r.IntN(5)]
		what := t.r.IntN(7)
		t.what = fmt.Sprintf("step %d, %s, %d", i, at, what)
		t.changed(i).tree = func(f *forge, root packfile.ID) packfile.ID {
			return f.raw(root, at, func(raw []byte) []byte {
				entries, err := parseTree(raw, packfile.SHA1)
				if err != nil || len(entries) == 0 {
					return append(raw, 'x')
				}
				first := encodeTree(entries[:1])
				switch what {
				case 0:
					return append(bytes.Clone(raw), first...) // once more, at the end
				case 1:
					return append(bytes.Clone(first), raw...) // twice
				case 2:
					return append([]byte("0"), raw...) // a mode with a zero before it
				case 3:
					return raw[:len(raw)-1]
				case 4:
					return append(bytes.Clone(raw), "100644 \x00aaaaaaaaaaaaaaaaaaaa"...)
				case 5:
					return append([]byte("100644 ..\x00aaaaaaaaaaaaaaaaaaaa"), raw...)
				}
				return append([]byte("40000 .GIT\x00aaaaaaaaaaaaaaaaaaaa"), raw...)
			})
		}
		return true
	}},
	{"an object missing", 60, func(t *tamper) bool {
		i := t.r.IntN(len(t.steps))
		what := t.r.IntN(3)
		name, _ := t.name(i, any_)
		t.what = fmt.Sprintf("step %d, %d %s", i, what, name)
		t.hide = func(f *forge) packfile.ID {
			switch what {
			case 0:
				return f.commits[i]
			case 1:
				return f.trees[i]
			}
			e, err := entryAt(f, f.trees[i], name)
			if err != nil {
				panic(err)
			}
			return e.id
		}
		return true
	}},
	{"an object of the wrong type", 40, func(t *tamper) bool {
		i := t.at()
		name, _ := t.name(i, any_)
		st := t.changed(i)
		switch t.r.IntN(3) {
		case 0:
			st.files[name] = file{id: t.trees[0]}
		case 1:
			st.files[name] = file{id: t.commits[0]}
		default:
			st.tree = func(f *forge, root packfile.ID) packfile.ID { return f.put(plumbing.BlobObject, []byte("x")) }
		}
		return true
	}},
	{"a merge", 60, func(t *tamper) bool {
		i := t.at()
		what, other := t.r.IntN(3), t.r.IntN(i)
		t.what = fmt.Sprintf("step %d with %d, %d", i, other, what)
		t.changed(i).parents = func(made []packfile.ID) []packfile.ID {
			last := made[len(made)-1]
			switch what {
			case 0:
				return []packfile.ID{last, made[other]}
			case 1:
				return []packfile.ID{made[other], last}
			}
			return []packfile.ID{last, last}
		}
		return true
	}},
	{"a second root, merged in", 20, func(t *tamper) bool {
		i := t.at()
		root := i - 1
		t.changed(root).parents = func([]packfile.ID) []packfile.ID { return nil }
		t.changed(i).parents = func(made []packfile.ID) []packfile.ID {
			return []packfile.ID{made[len(made)-2], made[len(made)-1]}
		}
		t.what = fmt.Sprintf("step %d, root %d", i, root)
		return i > 1
	}},
	{"the history cut off at a new root", 60, func(t *tamper) bool {
		i := t.at()
		t.what = fmt.Sprintf("step %d", i)
		t.changed(i).parents = func([]packfile.ID) []packfile.ID { return nil }
		return true
	}},
	{"a commit left out, its files not", 80, func(t *tamper) bool {
		i := t.at()
		if i+1 == len(t.steps) {
			return false
		}
		t.what = fmt.Sprintf("step %d", i)
		next := t.changed(i + 1)
		for name, one := range t.steps[i].files {
			if _, later := next.files[name]; !later {
				next.files[name] = one
			}
		}
		t.changed(i)
		t.steps = slices.Delete(t.steps, i, i+1)
		return true
	}},
	{"a commit left out whose transaction went on", 80, func(t *tamper) bool {
		i := t.at()
		if len(t.later(t.idOf(i), i)) < 2 {
			return false
		}
		t.what = fmt.Sprintf("step %d", i)
		t.changed(i)
		t.steps = slices.Delete(t.steps, i, i+1)
		return true
	}},
	{"two commits of one transaction exchanged", 60, func(t *tamper) bool {
		i := t.at()
		later := t.later(t.idOf(i), i)
		if len(later) < 2 {
			return false
		}
		t.changed(i)
		t.steps[i], t.steps[later[1]] = t.steps[later[1]], t.steps[i]
		return true
	}},
	{"a commit twice", 30, func(t *tamper) bool {
		i := t.at()
		t.changed(i)
		t.steps = slices.Insert(t.steps, i, t.steps[i])
		return true
	}},
	{"two commits made one", 60, func(t *tamper) bool {
		i := t.at()
		if i+1 == len(t.steps) {
			return false
		}
		t.what = fmt.Sprintf("step %d: %s and %s", i, t.idOf(i), t.idOf(i+1))
		st := t.changed(i)
		for name, one := range t.steps[i+1].files {
			st.files[name] = one
		}
		t.changed(i + 1)
		t.steps = slices.Delete(t.steps, i+1, i+2)
		return true
	}},
	{"a commit that brings nothing", 20, func(t *tamper) bool {
		i := t.at()
		t.changed(i)
		t.steps = slices.Insert(t.steps, i, step{message: t.steps[i].message, when: t.steps[i].when})
		return true
	}},
	{"a return to an earlier tree", 30, func(t *tamper) bool {
		n, back := len(t.steps), t.r.IntN(len(t.steps)-1)
		t.from = n
		t.steps = append(t.steps, step{message: t.steps[back].message, when: t.steps[back].when, tree: func(f *forge, _ packfile.ID) packfile.ID { return f.trees[back] }})
		t.what = fmt.Sprintf("step %d", back)
		return true
	}},
	{"a denial removed from the index", 40, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(i, denials)
		if !ok {
			return false
		}
		if t.r.IntN(2) == 0 {
			delete(t.changed(i).files, name)
			return true
		}
		if i++; i == len(t.steps) {
			return false
		}
		i += t.r.IntN(len(t.steps) - i)
		t.changed(i).files[name] = file{gone: true}
		return true
	}},
	{"a denial changed in the index", 30, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(i, denials)
		if !ok {
			return false
		}
		data := t.steps[i].files[name].data
		for _, e := range [][2]string{{"Ada", "Eve"}, {"because", "whyever"}, {`"kind":"fileChange"`, `"kind":"filechange"`}, {"2026-01-05", "2026-01-06"}} {
			if t.r.IntN(2) == 0 {
				data = bytes.Replace(data, []byte(e[0]), []byte(e[1]), 1)
			}
		}
		t.what = fmt.Sprintf("step %d %s", i, data)
		t.changed(i).files[name] = file{data: data}
		return true
	}},
	{"a denial removed from the events, chain and state made good", 30, func(t *tamper) bool {
		i := t.at()
		if !strings.HasPrefix(t.steps[i].message, "deny: ") {
			return false
		}
		return t.relog(i, true, func(events []ledger.Event) []ledger.Event {
			return slices.DeleteFunc(events, func(e ledger.Event) bool { return e.Type == ledger.TypeDecision })
		})
	}},
	{"a proposal removed from the index, or another added", 60, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(i, holds("proposed/"))
		if !ok {
			return false
		}
		one := t.steps[i].files[name]
		st := t.changed(i)
		switch t.r.IntN(3) {
		case 0:
			delete(st.files, name)
		case 1:
			st.files[path.Dir(name)+"/tx_01KE5W5200041061050R3GG28A.json"] = one
		case 2:
			st.files[name] = file{data: bytes.Replace(one.data, []byte(`"base_commit":"`), []byte(`"base_commit":"0`), 1)}
		}
		return true
	}},
	{"the time of a commit", 60, func(t *tamper) bool {
		i := t.at()
		t.changed(i).when = t.steps[i].when.Add(time.Duration([]int{-1, 1, 3600, -86400 * 365}[t.r.IntN(4)]) * time.Second)
		return true
	}},
	{"a trailer", 100, func(t *tamper) bool {
		i := t.at()
		lines := strings.SplitAfter(t.steps[i].message, "\n")
		n := 2 + t.r.IntN(4)
		key, _, _ := strings.Cut(lines[n], ": ")
		switch t.r.IntN(5) {
		case 0:
			lines[n] = ""
		case 1:
			lines[n] += lines[n]
		case 2:
			lines[n] = key + ": x\n"
		case 3:
			lines[n] = strings.ToLower(lines[n])
		case 4: // another commit's
			other := strings.SplitAfter(t.steps[t.at()].message, "\n")[n]
			if other == lines[n] {
				return false
			}
			lines[n] = other
		}
		t.what = fmt.Sprintf("step %d, %q", i, lines[n])
		t.changed(i).message = strings.Join(lines, "")
		return true
	}},
	{"author, committer or another header", 80, func(t *tamper) bool {
		i := t.at()
		edits := [][2]string{
			{"author countersign <countersign@localhost>", "author Eve <eve@example.org>"}, {"committer countersign <countersign@localhost>", "committer countersign <eve@example.org>"},
			{"author countersign", "author  countersign"}, {" +0000\ncommitter", " +0100\ncommitter"}, {" +0000\n\n", " -0000\n\n"}, {" +0000\n\n", " +0000\nencoding latin1\n\n"},
			{" +0000\n\n", " +0000\nx y\n\n"}, {" +0000\n\n", " +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n\n"}, {"author ", "author\t"},
			{" +0000\n\n", " +0000\nmergetag object 0\n\n"},
			{" +0000\n\n", " +0000\ngpgsig -----BEGIN SSH SIGNATURE-----\n Z2FyYmFnZQ==\n -----END SSH SIGNATURE-----\n\n"},
		}
		e := edits[t.r.IntN(len(edits))]
		t.what = fmt.Sprintf("step %d, %s", i, e)
		t.changed(i).header = func(raw string) string { return strings.Replace(raw, e[0], e[1], 1) }
		return true
	}},
	{"README.md or ledger.json", 40, func(t *tamper) bool {
		name := []string{ledger.ReadmeFile, ledger.SchemaFile}[t.r.IntN(2)]
		i := 0
		if t.r.IntN(2) == 0 {
			i = t.at()
		}
		data := t.before(i+1, name)
		data[t.r.IntN(len(data))] ^= 1
		one := file{data: data}
		if t.r.IntN(3) == 0 {
			one = file{gone: true}
		}
		t.changed(i).files[name] = one
		if i == 0 && one.gone {
			delete(t.steps[0].files, name)
		}
		return true
	}},
	{"a transaction at another place", 30, func(t *tamper) bool {
		i := t.at()
		id := t.idOf(i)
		later := t.of[id]
		to := []string{"transactions/2026/01/06/" + path.Base(path.Dir(ledger.Dir(id))) + "/" + id, "transactions/" + id, strings.ToLower(ledger.Dir(id)), "transactions/2026/01/05/00/" + id}[t.r.IntN(4)]
		for _, n := range later {
			st := t.changed(n)
			for name, one := range t.steps[n].files {
				if rest, ok := strings.CutPrefix(name, ledger.Dir(id)); ok {
					delete(st.files, name)
					st.files[to+rest] = one
				}
			}
		}
		return to != ledger.Dir(id)
	}},
	{"a page changed", 120, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(i, ledger.IsPage)
		if !ok {
			return false
		}
		data := string(t.steps[i].files[name].data)
		for _, e := range [][2]string{{"Ada", "Eve"}, {"**approve**", "**deny**"}, {"Completed", "Denied"}, {"| 1 |", "| 2 |"}, {"```", "~~~"}, {"| what |", "| what | "}, {"\n|", "\n\n|"}, {"# ", "# x"}} {
			if t.r.IntN(2) == 0 {
				data = strings.Replace(data, e[0], e[1], 1)
			}
		}
		t.what = fmt.Sprintf("step %d, %s", i, name)
		changed := data != string(t.steps[i].files[name].data)
		t.changed(i).files[name] = file{data: []byte(data)}
		return changed
	}},
	{"the page of another transaction", 40, func(t *tamper) bool {
		i, j := t.at(), t.at()
		name, other := ledger.Dir(t.idOf(i))+"/"+ledger.ReadmeFile, ledger.Dir(t.idOf(j))+"/"+ledger.ReadmeFile
		t.changed(i).files[name] = t.steps[j].files[other]
		return name != other
	}},
	{"a page that was not written again", 40, func(t *tamper) bool {
		i := t.at()
		name := ledger.Dir(t.idOf(i)) + "/" + ledger.ReadmeFile
		old := t.former(i, name)
		changes := !bytes.Equal(old, t.steps[i].files[name].data)
		delete(t.changed(i).files, name)
		return changes
	}},
	{"a row of a table left out, or another added", 60, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(i, isTable)
		if !ok {
			return false
		}
		if t.r.IntN(2) == 0 {
			delete(t.changed(i).files, name)
		} else {
			row := []byte("| [`tx_01KE5W5200041061050R3GG28A`](00/tx_01KE5W5200041061050R3GG28A/README.md) | 00:00:00 | `Eve` | nothing |\n")
			t.changed(i).files[name] = file{data: append(bytes.Clone(t.steps[i].files[name].data), row...)}
		}
		return true
	}},
	{"a table written without a row", 40, func(t *tamper) bool {
		i := t.at()
		name := []string{"transactions/2026/01/README.md", "denied/README.md", "transactions/2026/02/README.md", path.Dir(ledger.Dir(t.idOf(i))) + "/README.md"}[t.r.IntN(4)]
		if _, written := t.steps[i].files[name]; written {
			return false
		}
		t.changed(i).files[name] = file{data: append(t.former(i, name), "| x |\n"...)}
		return true
	}},
	{"a page removed", 40, func(t *tamper) bool {
		i := t.at()
		name, ok := t.name(t.r.IntN(i), ledger.IsPage)
		if _, again := t.steps[i].files[name]; !ok || again {
			return false
		}
		t.changed(i).files[name] = file{gone: true}
		return true
	}},
	{"an acceptance of another tip, or one that is malformed", 40, func(t *tamper) bool {
		t.from = len(t.steps)
		tip := t.commits[len(t.commits)-1].String()
		p := &ledger.AcceptTip{AcceptedTip: tip, RememberedTip: t.commits[3].String(), Author: ledger.Actor{Kind: "user", ID: "local:eve", Login: "Eve"}, Reason: "restored"}
		when := t.steps[len(t.steps)-1].when.Add(time.Second)
		what := t.r.IntN(7)
		if what == 0 {
			p.AcceptedTip = t.commits[t.r.IntN(len(t.commits)-1)].String()
		}
		tree := fstest.MapFS{ledger.SchemaFile: {Data: writing.Schema("", "1.0")}}
		e, err := writing.OwnEntry(tree, when, p)
		if err != nil {
			panic(err)
		}
		data := e.Files[ledger.LedgerEventsFile]
		st := step{message: e.Message, when: e.When, files: map[string]file{ledger.LedgerEventsFile: {data: data}}}
		switch what {
		case 1:
			st.when = when.Add(time.Second)
		case 2:
			st.message = strings.Replace(st.message, "Eve", "Ada", 1)
		case 3:
			at := t.r.IntN(len(data))
			data[at] ^= 4
		case 4:
			st.files[ledger.LedgerEventsFile] = file{data: append(data, data...)}
		case 5:
			st.files["transactions/x"] = file{data: data}
		case 6: // two at once
			tree[ledger.LedgerEventsFile] = &fstest.MapFile{Data: data}
			if e, err = writing.OwnEntry(tree, when, p); err != nil {
				panic(err)
			}
			st.files[ledger.LedgerEventsFile] = file{data: e.Files[ledger.LedgerEventsFile]}
		}
		t.what = fmt.Sprint(what)
		t.steps = append(t.steps, st)
		return true
	}},
	{"a shallow clone", 20, func(t *tamper) bool {
		i := t.at()
		t.distort = func(d *lineage.Distortions) { d.Shallow = map[packfile.ID]bool{t.commits[i]: true} }
		if t.r.IntN(2) == 0 { // and what is before is not here
			t.hide = func(f *forge) packfile.ID { return f.commits[i-1] }
		}
		t.what = fmt.Sprint(i)
		return true
	}},
	{"grafts", 20, func(t *tamper) bool {
		i := t.at()
		t.distort = func(d *lineage.Distortions) { d.Grafted = map[packfile.ID]bool{t.commits[i]: true} }
		return true
	}},
	{"a replacement of a commit, a tree or a file", 30, func(t *tamper) bool {
		i := t.at()
		name, _ := t.name(i, any_)
		what := t.r.IntN(3)
		t.distort = func(d *lineage.Distortions) {
			e, err := entryAt(t.objects, t.trees[i], name)
			if err != nil {
				panic(err)
			}
			d.Replaced = map[packfile.ID]bool{[]packfile.ID{t.commits[i], t.trees[i], e.id}[what]: true}
		}
		return true
	}},
}

// before is a file as the steps before i leave it.
func (t *tamper) before(i int, name string) []byte {
	if data := t.former(i, name); data != nil {
		return data
	}
	panic(name)
}

// former is a file as it was before a step, nil where there was none.
func (t *tamper) former(i int, name string) []byte {
	for n := i - 1; n >= 0; n-- {
		if one, ok := t.steps[n].files[name]; ok {
			return bytes.Clone(one.data)
		}
	}
	return nil
}

// events makes a kind of an edit of the lines that a step brings.
func events(edit func(t *tamper, lines [][]byte, at int) [][]byte) func(*tamper) bool {
	return func(t *tamper) bool {
		i := t.at()
		name := ledger.Dir(t.idOf(i)) + "/" + ledger.EventsFile
		n := bytes.Count(t.steps[i].files[name].data, []byte("\n"))
		at := t.r.IntN(n)
		t.what = fmt.Sprintf("step %d, event %d", i, at)
		return t.lines(i, func(lines [][]byte) [][]byte { return edit(t, lines, at) })
	}
}

// again changes what is recorded of a further proposal, and the artifact's name wherever that stands.
func again(old, new string) func(*tamper) bool {
	return func(t *tamper) bool {
		i := t.at()
		for name, f := range t.steps[i].files {
			if !bytes.Contains(f.data, []byte(ledger.AgainSchema)) || path.Base(path.Dir(name)) != "artifacts" {
				continue
			}
			at := bytes.Index(f.data, []byte(old)) + len(old)
			rest := f.data[at:]
			if strings.HasSuffix(old, `"patch_id":"`) {
				rest = rest[16:]
			}
			data := slices.Concat(f.data[:at-len(old)], []byte(new), rest)
			was, is := strings.TrimSuffix(path.Base(name), ".json"), canon.Hex(data)
			delete(t.changed(i).files, name)
			t.changed(i).files[path.Dir(name)+"/"+is+".json"] = file{data: data}
			return t.relog(i, true, func(events []ledger.Event) []ledger.Event {
				for n, e := range events {
					events[n].Payload = bytes.ReplaceAll(e.Payload, []byte(was), []byte(is))
				}
				return events
			})
		}
		return false
	}
}

// relog edits the events of every version of a transaction from step i on, makes
// the chain good again and, if asked to, transaction.json.
func (t *tamper) relog(i int, states bool, edit func([]ledger.Event) []ledger.Event) bool {
	id := t.idOf(i)
	dir := ledger.Dir(id) + "/"
	t.what = fmt.Sprintf("step %d", i)
	changed := false
	for _, n := range t.later(id, i) {
		var events []ledger.Event
		before := t.steps[n].files[dir+ledger.EventsFile].data
		for line := range bytes.Lines(before) {
			var e ledger.Event
			if err := canon.Unmarshal(line, &e); err != nil {
				panic(err)
			}
			events = append(events, e)
		}
		var out []byte
		var prev *string
		for at, e := range edit(events) {
			e.Seq, e.Prev = at+1, prev
			line, err := canon.Line(e)
			if err != nil {
				panic(err)
			}
			sum := canon.Sum(line)
			out, prev = append(out, line...), &sum
		}
		changed = changed || !bytes.Equal(out, before)
		st := t.changed(n)
		st.files[dir+ledger.EventsFile] = file{data: out}
		if log, err := ledger.ReadLog(out); err == nil && states {
			state, err := canon.Line(log.Transaction())
			if err != nil {
				panic(err)
			}
			st.files[dir+ledger.TransactionFile] = file{data: state}
		}
	}
	return changed
}

// decided has a commit of a stage say something else in what its decisions say, chain and state made good.
func decided(stage, was, is string) func(*tamper) bool {
	return func(t *tamper) bool {
		i := t.at()
		return strings.HasPrefix(t.steps[i].message, stage) && t.relog(i, true, func(events []ledger.Event) []ledger.Event {
			for n, e := range events {
				if e.Type == ledger.TypeDecision {
					events[n].Payload = bytes.Replace(e.Payload, []byte(was), []byte(is), 1)
				}
			}
			return events
		})
	}
}

// with puts an entry at a path of a tree.
func (f *forge) with(root packfile.ID, name string, e treeEntry) packfile.ID {
	return f.edited(root, edit{path: name, entry: e})
}

// without takes a path out of a tree.
func (f *forge) without(root packfile.ID, name string) packfile.ID {
	return f.edited(root, edit{path: name, gone: true})
}

func (f *forge) edited(root packfile.ID, e edit) packfile.ID {
	b := builder{overlay{f.batch, f.objects}, f.batch}
	id, err := b.tree(root, []edit{e})
	if err != nil {
		panic(err)
	}
	return id
}

// raw edits the bytes of a directory's tree.
func (f *forge) raw(root packfile.ID, dir string, change func([]byte) []byte) packfile.ID {
	o, err := f.View(root)
	if err != nil {
		panic(err)
	}
	if dir == "" {
		return f.put(plumbing.TreeObject, change(o.Data))
	}
	first, rest, _ := strings.Cut(dir, "/")
	entries, err := parseTree(o.Data, packfile.SHA1)
	if err != nil {
		panic(err)
	}
	for i, e := range entries {
		if e.name == first {
			entries[i].id = f.raw(e.id, rest, change)
		}
	}
	return f.put(plumbing.TreeObject, encodeTree(entries))
}

// written reports whether a path is written again by later stages.
func written(name string) bool {
	return ends(ledger.EventsFile)(name) || ends(ledger.TransactionFile)(name) || ledger.IsPage(name)
}

// denials are the files of the index in denied/.
func denials(name string) bool { return ledger.IsDenial(name) }

func isTable(name string) bool {
	_, _, ofTransaction := ledger.Within(name)
	return ledger.IsPage(name) && !ofTransaction && name != ledger.ReadmeFile
}
