# A guarded bare repository, and the clone of somebody with every right but the approver's key. What it leaves in
# "names" says which commits and transactions there are.
set -e
git config --global init.defaultBranch main
git config --global user.name Mallory
git config --global user.email mallory@example.org
git config --global gc.auto 0
git config --global maintenance.auto false
git config --global advice.detachedHead false
for key in ada bot mallory; do ssh-keygen -q -t ed25519 -N '' -C $key@example.org -f $key; done
git init -q --bare app.git
countersign guard install -C app.git >/dev/null
git clone -q app.git work 2>/dev/null
cd work
mkdir -p .github deps dir
echo "ada@example.org namespaces=\"git,countersign-decision@v2\" $(cat ../ada.pub)" >.github/allowed_signers
echo "bot@example.org namespaces=\"git\" $(cat ../bot.pub)" >.github/bot_keys
cat >.github/countersign.yml <<X
version: 1
approvals: {keys: .github/allowed_signers, signed: require, break_glass: [ada@example.org]}
gate: {bases: [main, release]}
explained:
  merges: covered
  bots:
    - {keys: .github/bot_keys, paths: [/deps/**]}
X
for f in a b c d e f; do printf 'one\ntwo\nthree\nfour\nfive\n' >$f.txt; done
echo 1 >deps/lock
echo in >dir/file
echo '#!/bin/sh' >run.sh
git add -A
git commit -qm begin
first=$(git rev-parse HEAD)
git push -q origin main main:release

# propose NAME SED FILE: a change of a file, and its transaction in tx_NAME
propose() {
	sed -i "$2" $3
	git diff >../$1.patch
	git checkout -q $3
	id=$(countersign review ../$1.patch --summary "$1" --to branch --push -q)
	eval "tx_$1=$id"
	echo "tx_$1=$id" >>../names
}
as_ada() { GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.org countersign "$@"; }
approve() { as_ada approve $1 --sign --key ../ada --push -q >/dev/null; }
apply() {
	git checkout -q --detach
	countersign apply $1 --to branch --branch main --push -q >/dev/null
	git checkout -q main
}
propose used 's/^two$/TWO/' b.txt
approve $tx_used
apply $tx_used
propose back 's/^TWO$/two/' b.txt
approve $tx_back
apply $tx_back
git push -q origin main
propose ok 's/^two$/TWO/' a.txt
approve $tx_ok
propose denied 's/^two$/TWO/' c.txt
as_ada deny $tx_denied --sign --key ../ada --reason no --push -q >/dev/null
propose pending 's/^two$/TWO/' d.txt
propose half 's/^two$/TWO/;s/^four$/FOUR/' e.txt
approve $tx_half

# What is on an unguarded branch already: the objects are on the server.
git checkout -q -b topic
echo evil >>f.txt
git commit -qam evil
git push -q origin topic
git checkout -q main
cat >>../names <<X
first=$first
main=$(git rev-parse main)
evil=$(git rev-parse topic)
ledger=$(git -C ../app.git rev-parse refs/agent/ledger)
X
git fetch -q origin '+refs/agent/*:refs/agent/*'
