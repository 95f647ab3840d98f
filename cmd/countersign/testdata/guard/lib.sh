# What the attacks have in common.
all() { git add -A; git commit -qm "${1:-x}"; }
amend() { git add -A; git commit -q --amend --no-edit; }
push() { git push -q origin main; }
both() { git push -q --atomic origin main refs/agent/ledger; }
fix() { git apply --index ../$1.patch; git commit -qm "$1"; }
signed() { git -c gpg.format=ssh -c user.signingkey=$PWD/../$1 commit -q -S -m "${2:-signed}"; }
side() { git checkout -q -b side $first; git commit -q --allow-empty -m side; git checkout -q main; git commit -q --allow-empty -m here; }
ledger() { git checkout -q --detach refs/agent/ledger; }
apply() { git checkout -q --detach; countersign apply $(eval echo \$tx_$1) --to branch --branch main -q >/dev/null; git branch -f applied main; git checkout -q main; }
# begin NAME [BRANCH]: as if the apply had been cut off between its two commits of the ledger.
begin() { git checkout -q --detach; countersign apply $(eval echo \$tx_$1) --to branch --branch ${2:-main} -q >/dev/null; git update-ref refs/agent/ledger refs/agent/ledger~1; git branch -f applied ${2:-main}; git checkout -q main; git reset -q --hard $main; }
# moved SINCE TIP: puts what a ledger has got since a commit onto the one that is checked out, as it is.
moved() {
	for c in $(git rev-list --reverse $1..$2); do
		git cherry-pick -n $c
		git reset -q --hard $(git cat-file commit $c | sed "1s/.*/tree $(git write-tree)/;2s/.*/parent $(git rev-parse HEAD)/" | git hash-object -t commit -w --stdin)
	done
}
# raw UPDATE…: a push as any program may send it.
raw() {
	{ for u in "$@"; do printf '%04x%s' $((${#u} + 4)) "$u"; done; printf 0000; git rev-parse HEAD | git pack-objects --revs --stdout -q; } | git receive-pack ../app.git >/dev/null
}
# own FLAGS: a proposal of one's own in ../x.patch, approved by oneself, and applied.
own() {
	mode=$1; shift
	id=$(countersign review ../x.patch --summary x --to branch $mode -q)
	countersign approve $id "$@" $mode -q >/dev/null || true
	git checkout -q --detach
	countersign apply $id --to branch --branch main $mode -q >/dev/null || { git checkout -q main; git apply ../x.patch; all "x

Countersign-Transaction: $id"; }
	git checkout -q main
}
