package proofs

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/workpaper"
)

//go:embed packet.txt
var readme []byte

// packetFlags ask for a sample. They belong together.
type packetFlags struct {
	dir, seed, key string
	size           int
	pdf            bool
	browser        string // the program that prints, where pages are to be printed
}

// check completes the flags, or refuses them.
func (f *packetFlags) check(c *console.Console, many bool) error {
	if *f == (packetFlags{}) {
		return nil
	}
	err := cmp.Or(
		console.RefuseIf(f.dir == "", "there is no directory for the packets", "name a new one: --packets DIR"),
		console.RefuseIf(f.size < 1 || f.size > evidence.MaxSample, fmt.Sprintf("a sample has 1 to %d changes, and not %d", evidence.MaxSample, f.size),
			"say how many: --sample 25"),
		console.RefuseIf(f.seed == "", "there is no seed", "give any text, and write it down before you draw: --seed TEXT"),
		console.RefuseIf(many, "packets are of this clone's repository", "leave out --repos and --installed"),
	)
	if err == nil {
		if bad := evidence.CheckSeed(f.seed); bad != nil {
			err = &console.UsageError{Message: bad.Error(), Hint: "--seed TEXT"}
		}
	}
	if err == nil {
		err = c.EmptyDir("--packets", f.dir)
	}
	if err == nil && f.pdf {
		f.browser, err = browser()
	}
	return err
}

// A packer writes a sample of a report into a directory.
type packer struct {
	*session.Session
	packetFlags
	ledger fs.FS
	masks  func(diff []byte) bool
	report evidence.Report
}

func (p packer) write(ctx context.Context) error {
	if err := p.EmptyDir("--packets", p.dir); err != nil { // once more: --out or --csv may be in it
		return err
	}
	sign, err := p.StatementSigner(ctx, p.key)
	if errors.Is(err, console.ErrNoSignKey) {
		sign, err = nil, nil
	}
	if err != nil {
		return err
	}
	snap, err := p.Local.At(ctx, p.report.Repositories[0].LedgerCommit)
	if err != nil {
		return err
	}
	p.ledger = snap.Tree
	m, drawn := evidence.NewPacket(p.report, p.seed, p.size)
	for i, row := range drawn {
		p.Line.Show("packets", i, len(drawn))
		files, err := p.packet(ctx, row)
		if err != nil {
			return err
		}
		if m.Packets[i].Files, err = p.put(m.Packets[i].Dir, files); err != nil {
			return err
		}
	}
	population, err := canon.Line(p.report)
	if err != nil {
		return err
	}
	if m.Files, err = p.put("", map[string][]byte{evidence.ReportFile: population, evidence.ReadmeFile: readme}); err != nil {
		return err
	}
	return p.seal(m, sign)
}

// put writes files below the directory, and lists them.
func (p packer) put(below string, files map[string][]byte) (list []evidence.File, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, evidence.ListFile(name, files[name]))
	}
	return list, p.WriteFiles(filepath.Join(p.dir, below), files)
}

// seal writes the manifest, and signs it if there is a key, and puts a copy of both into each packet.
func (p packer) seal(m evidence.Manifest, sign func(namespace string, message []byte) (string, error)) error {
	raw, err := m.Bytes()
	if err != nil {
		return err
	}
	files := map[string][]byte{evidence.ManifestFile: raw}
	how := "not signed, so that nobody vouches for it (--sign-key FILE or --key FILE signs)"
	if sign != nil {
		signature, err := sign(evidence.PacketNamespace, raw)
		if err != nil {
			return err
		}
		files[evidence.SignatureFile], how = []byte(signature), "signed"
	}
	for _, one := range m.Packets {
		if _, err := p.put(one.Dir, files); err != nil {
			return err
		}
	}
	if _, err := p.put("", files); err != nil {
		return err
	}
	p.Say("%s: %d of %s, drawn with the seed %+q; %s", report.Clean(p.dir), len(m.Packets), ledger.Plural(m.Population, "change", "changes"), m.Seed, how)
	return nil
}

// packet are the files of a change's packet.
func (p packer) packet(ctx context.Context, row evidence.Row) (map[string][]byte, error) {
	item, err := canon.Line(row)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{evidence.ItemFile: item, evidence.ReadmeFile: readme}
	for _, id := range row.Commits {
		diff, err := p.diff(ctx, id)
		if err != nil {
			return nil, err
		}
		if diff != nil {
			files[id+".diff"] = diff
		}
	}
	var records []string
	for _, rec := range row.Records {
		records = append(records, ledger.Dir(rec.TransactionID)+"/")
		if err := p.transaction(files, rec.TransactionID); err != nil {
			return nil, err
		}
	}
	beside := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return strings.Contains(name, "/") })
	files["index.html"] = workpaper.Item(p.report, row, append(beside, records...))
	if p.pdf {
		for name, page := range maps.Clone(files) {
			if base, is := strings.CutSuffix(name, ".html"); is {
				if files[base+".pdf"], err = p.printed(ctx, page); err != nil {
					return nil, err
				}
			}
		}
	}
	return files, nil
}

// diff is what a commit changes, nil where no patch can say it, or something in it looks like a secret.
func (p packer) diff(ctx context.Context, id string) ([]byte, error) {
	parent, err := p.Repo.FirstParent(ctx, id)
	if errors.Is(err, gitstore.ErrNoParent) || console.As[*gitstore.CutOffError](err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	set, err := p.Repo.Diff(ctx, parent, id)
	if console.As[*patch.Error](err) {
		return nil, nil
	}
	if err != nil || p.masks(set.Bytes()) {
		return nil, err
	}
	return set.Bytes(), nil
}

// transaction adds a transaction's page, and its record as the ledger has it.
func (p packer) transaction(files map[string][]byte, id string) error {
	repo := p.report.Repositories[0]
	elsewhere := p.Elsewhere || p.Local.KeptElsewhere(p.Repo.Config.RemoteURL(p.Flags.Remote))
	o := html.Options{LedgerRef: repo.LedgerRef, LedgerCommit: repo.LedgerCommit, Elsewhere: elsewhere, Links: p.Links()}
	page, _, _, err := html.Alone(p.ledger, id, o, p.masks)
	if err != nil {
		return err
	}
	files[id+".html"] = []byte(page)
	record, err := lookup.Files(p.ledger, id)
	for name, data := range record {
		files[path.Join(ledger.Dir(id), name)] = data
	}
	return err
}

// printTimeout is how long a browser may take for a page.
const printTimeout = 2 * time.Minute

// browsers are the programs that can print a page, by their usual names.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

func browser() (string, error) {
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	none := "there is no Chromium to print with: none of " + strings.Join(browsers, ", ")
	return "", &console.UsageError{Message: none, Hint: "leave out --pdf, and print index.html with any browser"}
}

// printed prints a page as PDF. The browser sees nothing of this process but the page.
func (p packer) printed(ctx context.Context, page []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "countersign-print-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.pdf")
	if err := os.WriteFile(in, page, 0o600); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, printTimeout)
	defer stop()
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(in)}
	cmd := exec.CommandContext(ctx, p.browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--no-pdf-header-footer",
		"--user-data-dir="+dir, "--print-to-pdf="+out, address.String())
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + p.Getenv("PATH")}
	said, err := cmd.CombinedOutput()
	var pdf []byte
	if err == nil {
		pdf, err = os.ReadFile(out)
	}
	if err == nil && !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		err = errors.New("it wrote no PDF")
	}
	if err != nil {
		return nil, &console.ExitError{Code: console.ExitIO, Err: fmt.Errorf("printing with %s: %w: %s", report.Clean(p.browser), err, ledger.OneLine(string(said), 300))}
	}
	return pdf, nil
}
