package pages

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/bundle"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/report/verifier"
)

// bundleAddress is the ledger itself, as a Git bundle beside the page that verifies it.
const bundleAddress = "verify/" + verifier.BundleFile

// objectsFile keeps which objects the bundle has, so that it can grow.
const objectsFile = ".countersign-site.objects"

// bundles reports whether the site has the ledger itself: it has every diff.
func (o options) bundles() bool { return !o.redact && !o.noBundle }

// writeBundle writes the ledger, whole.
func (b *build) writeBundle(ctx context.Context, dir *dir) error {
	b.objects = ""
	if b.bundles() && b.masked.Load() {
		b.Say("%s is left out: a diff has what looks like a secret, and the page leaves that out", bundleAddress)
	}
	if !b.bundles() || b.masked.Load() {
		return errors.Join(dir.remove(objectsFile), dir.remove(bundleAddress))
	}
	b.Progress("the ledger as a bundle", 0, 0)
	var objects gitstore.BundleObjects
	write := func(read bool) error {
		return dir.stream(bundleAddress, func(w io.Writer) (err error) {
			objects, err = b.Ledger.WriteListedBundle(ctx, b.tip, read, w)
			return err
		})
	}
	err := write(b.ok())
	if err != nil && b.ok() { // the audit did not read it
		err = write(false)
	}
	if err != nil && !b.ok() { // what cannot be read was found
		b.Say("%s is left out: %v", bundleAddress, err)
		return dir.remove(bundleAddress)
	}
	if err != nil {
		return err
	}
	return b.keepObjects(dir, objects)
}

func (b *build) keepObjects(dir *dir, objects gitstore.BundleObjects) error {
	b.objects = canon.Sum(objects)
	return dir.place(objectsFile, dir.whole(objects))
}

// growBundle adds what came since an earlier tip to the bundle of that, where it is as it was written;
// otherwise it is written anew.
func (b *build) growBundle(ctx context.Context, dir *dir, from string) error {
	switch {
	case b.masked.Load():
		return b.writeBundle(ctx, dir)
	case b.objects == "" || b.tip == from: // it was left out, for a reason that holds
		return nil
	}
	has, err := fs.ReadFile(dir.FS(), objectsFile)
	if err != nil || canon.Sum(has) != b.objects {
		return b.writeBundle(ctx, dir)
	}
	earlier, err := dir.Open(bundleAddress)
	if err != nil {
		return b.writeBundle(ctx, dir)
	}
	defer earlier.Close()
	info, err := earlier.Stat()
	if err != nil {
		return failed(dir.name, err)
	}
	var objects gitstore.BundleObjects
	err = dir.stream(bundleAddress, func(w io.Writer) (err error) {
		objects, err = b.Ledger.GrowBundle(ctx, b.tip, from, has, io.NewSectionReader(earlier, 0, info.Size()), w)
		return err
	})
	if errors.As(err, new(*bundle.Error)) {
		return b.writeBundle(ctx, dir)
	}
	if err != nil {
		return err
	}
	return b.keepObjects(dir, objects)
}
