// Package packfile reads and writes the objects of a Git repository: loose
// objects, packs with their indexes, and the object directories that a
// repository borrows from. It exists because go-git reads a whole index to
// find one object and writes every object to a file of its own.
//
// A [Store] promises that what it returns hashes to the name that was asked
// for, that a damaged file is an error that is [ErrDamaged] and never a panic
// or an allocation that the file merely claims to need, and that an object
// which is nowhere is [ErrMissing], never fs.ErrNotExist. What it writes is
// complete on the disk before it gets its name, and `git gc` leaves it alone
// until [Store.Release]. [Store.Verify] finds any bit of a pack or index that
// changed; [Store.Merge] makes one pack of many and loses nothing, wherever it
// stops.
//
// A [Batch] is what is to be written or sent: objects that a program made, each
// maybe as a delta on an earlier version, or those of a pack that was received
// ([Decode]).
//
// # Loose objects (gitrepository-layout(5))
//
//	objects/<2 hex>/<38 hex>    zlib("<type> <size>\0<content>")
//
// # Packs (gitformat-pack(5))
//
//	objects/pack/pack-<40 hex>.pack
//	    "PACK", version 2, number of objects       4 bytes each, big-endian
//	    entries: type and size, base, zlib(content or delta)
//	    SHA-1 of all of the above
//	    (the name is a random one: no two packs are ever the same file)
//	objects/pack/pack-<40 hex>.keep
//	    "countersign-<16 hex>\n": held until a ref leads to what is in it
//	objects/countersign-<16 hex>/
//	    lock, and files that are not done; it is there while a pack is written or held
//	objects/pack/pack-<40 hex>.idx, version 2
//	    "\377tOc", 2
//	    256 x 4 bytes: how many names begin with this byte or a lower one
//	    sorted names (20 bytes), CRC-32 of entries (4), offsets (4)
//	    offsets of 8 bytes, for those whose 4 bytes have the first bit set
//	    SHA-1 of the pack, SHA-1 of all of the above
//
// An entry's delta is put on a base in the same pack, named by how far back it
// lies (OFS_DELTA) or by its hash (REF_DELTA). A delta says the sizes of its
// base and of what it makes, and then what to copy of the base and what to
// insert. This package writes only OFS_DELTA, at most 50 on each other, each of
// which copies the beginning, inserts once and copies the end: an append changes
// a tree in one place, so a search would find nothing better. Small content
// stands in zlib streams that do not compress, since to do so takes longer than
// all else that happens to it. Indexes of version 1, which git
// last wrote in 2007, are not read; multi-pack indexes are not needed.
package packfile
