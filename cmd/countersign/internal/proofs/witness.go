package proofs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/witness"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

func witnessCommand(c *console.Console) *cobra.Command {
	var file string
	var quorum int
	cmd := &cobra.Command{
		Use:   "witness",
		Short: "Show the ledger's tip to witnesses, and keep what they sign",
		Long: `witness makes a checkpoint of the ledger, signs it with the ledger's key, asks all witnesses at
once to sign it too, and keeps it beside the ledger. Each signs only what adds to all that it saw
before, so a reader who trusts some of them knows that nothing was taken out or made anew:
countersign audit --witnesses FILE --quorum N. docs/witnesses.md has the file and the formats.

A witness that is down, or signs something else, is a line; --quorum makes too few an error.
Without --witnesses the Policy names the file.`,
		Example: "  countersign witness --witnesses witnesses.txt --push\n  countersign witness --quorum 2 --json",
		Args:    console.NoCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cosignTip(cmd.Context(), c, file, quorum) },
	}
	cmd.Flags().StringVar(&file, "witnesses", "", "the ledger's name and key, and the witnesses, are in `FILE`")
	cmd.Flags().IntVar(&quorum, "quorum", 0, "fail unless `N` witnesses sign")
	cmd.AddCommand(witnessKeyCommand(c), witnessServeCommand(c))
	return cmd
}

// A checkpointStore is a ledger with the checkpoints beside it.
type checkpointStore interface {
	Snapshot(ctx context.Context, paths ...string) (writing.Snapshot, error)
	Leaves(ctx context.Context, tip string, hash func(commit []byte) [32]byte) ([]gitstore.Leaf, error)
	session.BesideStore
}

var (
	_ checkpointStore = (*gitstore.Ledger)(nil)
	_ checkpointStore = (*gitstore.Shared)(nil)
)

func cosignTip(ctx context.Context, c *console.Console, name string, quorum int) error {
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	var f witness.File
	if name != "" {
		if f, err = readWitnesses(c, name); err != nil {
			return err
		}
	} else {
		p, named, err := PolicyWitnesses(ctx, s)
		if err != nil {
			return err
		}
		if p.File == "" {
			return &console.UsageError{Message: "nothing names the witnesses", Hint: "name their file: --witnesses FILE, or witnesses.file in the Policy"}
		}
		f, quorum = named, max(quorum, p.Required)
	}
	if err := checkQuorum(f, quorum); err != nil {
		return err
	}
	done, err := cosign(ctx, s, f)
	if err != nil {
		return err
	}
	if err := c.Result(done.document(c.Flags.LedgerRef), done.text(c.Flags.LedgerRef)); err != nil {
		return err
	}
	return done.enough(quorum)
}

// readWitnesses reads the file of witnesses that a flag names.
func readWitnesses(c *console.Console, name string) (witness.File, error) {
	raw, err := c.ReadFile(name)
	if err != nil {
		return witness.File{}, err
	}
	return witnessesIn(name, raw)
}

// witnessesIn reads a file of witnesses.
func witnessesIn(name string, raw []byte) (witness.File, error) {
	f, err := witness.ParseFile(raw)
	if err == nil {
		_, err = f.Origin()
	}
	if err == nil && len(f.Witnesses) == 0 {
		err = errors.New("it names no witness")
	}
	if err != nil {
		return f, &console.UsageError{Message: fmt.Sprintf("%s: %v", name, err), Hint: "docs/witnesses.md says what the file has"}
	}
	return f, nil
}

// checkQuorum refuses a number that nobody can meet.
func checkQuorum(f witness.File, quorum int) error {
	if quorum < 0 || quorum > len(f.Witnesses) {
		return &console.UsageError{Message: fmt.Sprintf("a quorum of %d, and the file names %s", quorum, ledger.Plural(len(f.Witnesses), "witness", "witnesses")), Hint: "--quorum takes how many of the file's witnesses are needed"}
	}
	return nil
}

// PolicyWitnesses are those that the Policy names, if it does.
func PolicyWitnesses(ctx context.Context, s *session.Session) (policy.Witnesses, witness.File, error) {
	tree, p, err := s.Policy(ctx)
	if err != nil || p.Witnesses.File == "" {
		return p.Witnesses, witness.File{}, err
	}
	raw, err := policy.ReadNamed(tree, "witnesses.file", p.Witnesses.File)
	if err != nil {
		return p.Witnesses, witness.File{}, err
	}
	f, err := witnessesIn(p.Witnesses.File, raw)
	return p.Witnesses, f, err
}

// logKey is the key of the file's log that this program has.
func logKey(c *console.Console, f witness.File) (witness.Key, witness.Sign, error) {
	origin, err := f.Origin()
	if err != nil {
		return witness.Key{}, nil, err
	}
	k, sign, err := noteKey(c, origin, false)
	if err == nil && !slices.Contains(f.Logs, k) {
		err = &console.UsageError{Message: "the key that signs the ledger is not on a log line of the file", Hint: "countersign witness key " + escape.ShellQuote(origin)}
	}
	return k, sign, err
}

// noteKey is the key that signs, under a name.
func noteKey(c *console.Console, name string, cosigns bool) (witness.Key, witness.Sign, error) {
	key, err := c.LedgerKey()
	if err != nil {
		return witness.Key{}, nil, err
	}
	public, sign, ok := key.Ed25519()
	if !ok {
		return witness.Key{}, nil, &console.UsageError{Message: "checkpoints are signed with Ed25519, and the key is of another kind", Hint: "ssh-keygen -t ed25519"}
	}
	k, err := witness.NewKey(name, public, cosigns)
	if err != nil {
		err = &console.UsageError{Message: err.Error(), Hint: ""}
	}
	return k, sign, err
}

// A cosigned is a checkpoint, and who signed it.
type cosigned struct {
	file   witness.File
	note   witness.Note
	commit string
	failed map[string]error // by the names of those who did not
	// ignored are checkpoints that are kept and did not count, and why.
	ignored []string
}

// maxCosigns bounds how often a checkpoint is kept, or made again, against other writers.
const maxCosigns = 5

// cosign makes a checkpoint of the ledger's tip, asks the witnesses that have not signed it yet, and
// keeps it.
func cosign(ctx context.Context, s *session.Session, f witness.File) (cosigned, error) {
	k, sign, err := logKey(s.Console, f)
	if err != nil {
		return cosigned{}, err
	}
	done := cosigned{file: f, failed: map[string]error{}}
	for attempt := 1; ; attempt++ {
		err := cosignOnce(ctx, s.Console, s.Store.(checkpointStore), &done, k, sign)
		ahead := errors.Is(err, witness.ErrBeyond) // somebody else was faster, or it was set back
		if attempt == maxCosigns || !ahead && !errors.Is(err, writing.ErrMoved) {
			return done, err
		}
		session.Pause(ctx, attempt)
	}
}

func cosignOnce(ctx context.Context, c *console.Console, store checkpointStore, done *cosigned, k witness.Key, sign witness.Sign) error {
	snap, err := store.Snapshot(ctx)
	if err != nil {
		return err
	}
	if snap.Tip == "" {
		return gitstore.ErrNoLedger
	}
	log, err := checkpointOf(ctx, store, snap.Tip, k, sign)
	if err != nil {
		return err
	}
	before, err := store.Kept(ctx, gitstore.Checkpoints, nil)
	if err != nil {
		return err
	}
	fresh, err := done.file.Open(log.Note)
	if err != nil {
		return err
	}
	notes, seen := []witness.Note{fresh}, map[string]int64{}
	asked := done.note.Checkpoint == fresh.Checkpoint // in the try before
	if asked {
		notes[0] = done.note
	}
	done.ignored = nil
	for _, name := range slices.Sorted(maps.Keys(before.Files)) {
		n, err := done.file.Open(before.Files[name])
		if err != nil { // it counts for nobody, and the history of the ref has it
			done.ignored = append(done.ignored, fmt.Sprintf("what is kept as %s does not count: %v", name, err))
			continue
		}
		if err := n.In(log.Tree); err != nil {
			return err
		}
		notes = append(notes, n)
		for name := range n.Seen {
			seen[name] = max(seen[name], n.Size)
		}
	}
	alone := notes[0]
	notes = witness.Keep(notes)
	if notes[0], err = done.file.Open(notes[0].Raw); err != nil { // with what was kept of it
		done.ignored = append(done.ignored, fmt.Sprintf("what is kept of the newest checkpoint does not count: %v", err))
		notes[0] = alone
	}
	if !asked {
		if notes[0], err = askWitnesses(ctx, done, log, notes[0], seen); err != nil {
			return err
		}
	}
	done.note, done.commit = notes[0], snap.Tip
	files := map[string][]byte{}
	for _, n := range witness.Keep(notes) {
		files[fmt.Sprintf("%d-%x", n.Size, n.Root[:6])] = n.Raw
	}
	if maps.EqualFunc(files, before.Files, slices.Equal) {
		return nil
	}
	return store.Keep(ctx, gitstore.Checkpoints, before, files, c.Now())
}

// checkpointOf makes the checkpoint of a ledger that ends with a tip.
func checkpointOf(ctx context.Context, store checkpointStore, tip string, k witness.Key, sign witness.Sign) (WitnessLog, error) {
	var log WitnessLog
	_, tree, err := leavesOf(ctx, store, tip)
	if err != nil {
		return log, err
	}
	root, err := tree.Root(tree.Size())
	if err != nil {
		return log, err
	}
	log.Tree, log.Checkpoint = tree, witness.Checkpoint{Origin: k.Name(), Size: tree.Size(), Root: root}
	log.Note, err = log.Checkpoint.SignLog(k, sign)
	return log, err
}

// leavesOf are the commits of a ledger, and the tree over them.
func leavesOf(ctx context.Context, store interface {
	Leaves(ctx context.Context, tip string, hash func(commit []byte) [32]byte) ([]gitstore.Leaf, error)
}, tip string) ([]gitstore.Leaf, *witness.Tree, error) {
	leaves, err := store.Leaves(ctx, tip, func(commit []byte) [32]byte { return witness.Leaf(commit) })
	if err != nil {
		return nil, nil, err
	}
	hashes := make([]witness.Hash, len(leaves))
	for i, l := range leaves {
		hashes[i] = l.Hash
	}
	tree, err := witness.NewTree(hashes)
	return leaves, tree, err
}

// askWitnesses asks those that have not signed a note, and returns it with the signatures that it got.
func askWitnesses(ctx context.Context, done *cosigned, log WitnessLog, n witness.Note, seen map[string]int64) (witness.Note, error) {
	var missing []witness.Witness
	for _, w := range done.file.Witnesses {
		if _, signed := n.Seen[w.Name]; !signed {
			missing = append(missing, w)
		}
	}
	raw := slices.Clone(n.Raw)
	for i, answer := range log.Ask(ctx, witnessTimeout, missing, seen) {
		delete(done.failed, missing[i].Name)
		if answer.Err != nil {
			done.failed[missing[i].Name] = answer.Err
			continue
		}
		raw = append(raw, answer.Line...)
	}
	return done.file.Open(raw)
}

// enough demands that so many witnesses signed, and nothing of 0.
func (c cosigned) enough(quorum int) error {
	if len(c.note.Seen) >= quorum {
		return nil
	}
	return &console.ExitError{Code: console.ExitFailed, Err: fmt.Errorf("%d of the %s that are needed signed the ledger's checkpoint", len(c.note.Seen), ledger.Plural(quorum, "witness", "witnesses"))}
}

// lines says what became of each witness, in the file's order.
func (c cosigned) lines() (out []string) {
	for _, w := range c.file.Witnesses {
		if err := c.failed[w.Name]; err != nil {
			out = append(out, fmt.Sprintf("witness %s did not sign: %s", w.Name, ledger.OneLine(err.Error(), 300)))
		}
	}
	return append(out, c.ignored...)
}

func (c cosigned) text(ref string) string {
	text := fmt.Sprintf("%s %.12s  checkpoint of %s, signed by %d of %s\n", ref, c.commit, report.Counted(int(c.note.Size), "commit"), len(c.note.Seen), ledger.Plural(len(c.file.Witnesses), "witness", "witnesses"))
	for _, line := range c.lines() {
		text += "  " + line + "\n"
	}
	return text
}

func (c cosigned) document(ref string) console.Document {
	all := []any{}
	for _, w := range c.file.Witnesses {
		message := ""
		if err := c.failed[w.Name]; err != nil {
			message = ledger.OneLine(err.Error(), 300)
		}
		_, signed := c.note.Seen[w.Name]
		all = append(all, map[string]any{"name": w.Name, "signed": signed, "error": message})
	}
	return console.Document{
		"ledger_ref": ref, "ledger_commit": c.commit, "origin": c.note.Origin, "commits": float64(c.note.Size),
		"signed": float64(len(c.note.Seen)), "witnesses": all, "ignored": append([]string{}, c.ignored...),
	}
}
