# An agent that tries to reach everything outside its scratch tree (T93). What works, it names in a line with OWNED.
# $1 is the person's working tree, $2 their home, $3 a transaction that waits, $4 a socket, $5 an abstract one, $6 a process.
real=$1 home=$2 tx=$3 socket=$4 abstract=$5 victim=$6
scratch=$(pwd)
tried=0
try() { tried=$((tried + 1)); name=$1; shift; if timeout 5 sh -c "$*" >/dev/null 2>&1 </dev/null; then echo "OWNED $name"; fi; }
up=$(echo "$scratch" | sed 's,/[^/]*,../,g')

# Deciding.
for words in "approve $tx" "approve --all $tx" "deny --reason no $tx" "apply $tx" "run $tx" "close $tx" "sync" "init --yes" "review --worktree"; do
	try "countersign $words" "countersign -C '$real' $words"
	try "countersign with GIT_DIR $words" "GIT_DIR='$real/.git' GIT_WORK_TREE='$real' countersign $words"
	try "countersign here $words" "countersign --remote '$real' --push $words"
done

# Git, by itself.
for words in "update-ref -d refs/agent/ledger" "update-ref refs/heads/main HEAD" "config core.hooksPath /tmp" "commit --allow-empty -m owned" "branch owned" "gc --prune=now" \
	"tag owned" "worktree add /tmp/w" "checkout -b owned" "stash" "reset --hard"; do
	try "git $words" "git -C '$real' -c user.name=o -c user.email=o -c safe.directory='*' $words"
	try "git dir $words" "git --git-dir='$real/.git' --work-tree='$real' -c user.name=o -c user.email=o -c safe.directory='*' $words"
done

# The working tree, by its name and by others.
for file in "$real/greet.txt" "$up$real/greet.txt" "$real/./d/../greet.txt" "$real/.countersign.yml"; do
	try "write $file" "echo owned >>'$file'"
	try "truncate $file" ": >'$file'"
	try "chmod $file" "chmod 777 '$file'"
	try "touch $file" "touch -d 2001-01-01 '$file'"
	try "remove $file" "mv '$file' '$file.gone' && mv '$file.gone' '$file'"
done
try "new file" "echo owned >'$real/owned'"
try "new directory" "mkdir '$real/owned.d'"

# .git: hooks, configuration, refs, objects, index, the ledger.
for file in hooks/post-commit hooks/pre-push config config.worktree HEAD index packed-refs refs/heads/main refs/agent/ledger info/attributes info/exclude \
	objects/info/alternates objects/ab countersign/files info/grafts description; do
	try ".git/$file" "mkdir -p \$(dirname '$real/.git/$file') && echo owned >>'$real/.git/$file'"
done
alternate=$(sed -n 1p .git/objects/info/alternates)
try "new object" "echo owned >'$alternate/owned'"
try "new pack" "mkdir -p '$alternate/pack' && echo owned >'$alternate/pack/pack-owned.idx'"
for object in $(find "$alternate" -type f); do
	try "object $object" "chmod u+w '$object' && echo owned >>'$object'"
	try "remove object $object" "rm -f '$object' && test ! -e '$object'"
	break
done
try "push" "git push '$real' HEAD:refs/heads/owned"

# Links, mounts, namespaces, roots.
ln -s "$real/greet.txt" link; try "symlink" "echo owned >>link"
ln -s "$real/.git" linked; try "symlink to .git" "echo owned >>linked/config"
ln -s "$up$real" relative; try "relative symlink" "echo owned >>relative/greet.txt"
try "hard link" "ln '$real/greet.txt' hard && echo owned >>hard"
try "hard link to an object" "ln \$(find '$alternate' -type f | sed -n 1p) hard2"
try "bind" "mkdir -p bound && mount --bind '$real' bound && echo owned >>bound/greet.txt"
try "remount" "mount -o remount,rw '$alternate' && echo owned >'$alternate/owned'"
try "umount" "umount -l '$scratch'"
try "unshare" "unshare -Urm sh -c 'mount --bind $real /tmp && echo owned >>/tmp/greet.txt'"
try "user namespace" "unshare -U true"
try "nsenter" "nsenter -t 1 -a true"
try "chroot" "chroot /proc/1/root true"
try "device" "mknod disk b 8 0"

# Processes: /proc, traces, signals.
for process in $(ls -d /proc/[0-9]* | tail -n 8); do
	try "$process/root" "echo owned >>'$process/root$real/greet.txt'"
	try "$process/cwd" "echo owned >>'$process/cwd/d/../../repo/greet.txt'"
	try "$process/fd" "for f in $process/fd/*; do echo owned >>\$f/greet.txt && exit 0; done; exit 1"
	try "$process/mem" "test $process != /proc/\$\$ && test $process = /proc/1 && head -c1 $process/mem"
done
try "signal" "kill -0 $victim"
try "trace" "gdb -p $victim -batch 2>&1 | grep -q 'process $victim'"
try "parent" "head -c1 /proc/1/environ | grep -q ."
try "the kernel's settings" "true >>/proc/sys/kernel/core_pattern"

# Sockets, keys, and the person's home.
connect='use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un($ARGV[0])) or exit 1'
try "socket" "perl -e '$connect' '$socket'"
try "abstract socket" "perl -e '${connect%%connect*}connect(S, sockaddr_un(qq{\\0} . \$ARGV[0])) or exit 1' '$abstract'"
try "ssh-agent" "test -n \"\$SSH_AUTH_SOCK\""
try "variables" "env | grep -v '^COUNTERSIGN_SCRATCH=' | grep -q '^COUNTERSIGN_\|^GIT_DIR\|TOKEN\|DBUS_SESSION'"
try "systemd-run" "systemd-run --user true"
try "at" "echo true | at now"
for file in .ssh/id_ed25519 .config/gh/hosts.yml .gnupg/key .git-credentials .netrc .bashrc; do
	try "read ~/$file" "grep -q . '$home/$file'"
	try "write ~/$file" "echo owned >>'$home/$file'"
	echo owned >>"$HOME/$file" 2>/dev/null
done
for file in /etc/passwd "$(command -v git)" "$(command -v countersign)"; do try "open $file for writing" "true >>'$file'"; done
for dir in /usr/bin /etc/cron.d /var/tmp /run /dev/shm "$(dirname "$(command -v countersign)")"; do try "a file in $dir" "echo owned >'$dir/owned-$$' && rm '$dir/owned-$$'"; done

# The channel: what is no request is not answered, and nobody else's socket takes its place.
ask='use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un($ENV{COUNTERSIGN_SCRATCH})) && syswrite(S, $ARGV[0]) && shutdown(S, 1) && <S> or exit 1'
for request in "approve
" "approve $tx
" "apply
" "deny
" "propose $tx
" "propose" "PROPOSE
" " status
" "{\"do\": \"propose\"}
" "$(head -c 100000 /dev/zero | tr '\0' x)
"; do try "ask $request" "perl -e '$ask' '$request'"; done
for words in "rm -f" "mv -t /tmp" "ln -sf /dev/null" "chmod 777"; do try "channel $words" "$words \"\$COUNTERSIGN_SCRATCH\""; done
try "a file in the channel" "echo owned >\"\$(dirname \"\$COUNTERSIGN_SCRATCH\")/owned\""

# MCP: no tool decides, applies, closes or reaches the repository, however it is called.
begin='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
tools="approve deny apply run decide close sync gate settle approval_respond propose_patch propose_edits review sign"
for server in "countersign mcp" "countersign -C $real mcp"; do
	n=1 answers=$(mktemp)
	{
		echo "$begin"
		for tool in $tools; do
			n=$((n + 1))
			echo "{\"jsonrpc\":\"2.0\",\"id\":$n,\"method\":\"tools/call\",\"params\":{\"name\":\"$tool\",\"arguments\":{\"transaction\":\"$tx\",\"patch\":\"x\"}}}"
		done
		sleep 0.5
	} | timeout 5 $server >"$answers" 2>/dev/null
	n=1
	for tool in $tools; do
		n=$((n + 1))
		try "$tool by $server" "grep '\"id\":$n[,}]' '$answers' | grep -qv '\"error\"\|\"isError\":true'"
	done
	rm "$answers"
done

# Privileges, and races with whoever reads the tree.
cp "$(command -v sh)" suid && for mode in 4755 2755 6755; do try "setuid $mode" "chmod $mode suid && ./suid -p -c 'echo owned >>$real/greet.txt'"; done
for way in "sudo -n" "su -c" "doas -n" "pkexec"; do try "$way" "$way true"; done
try "capability" "setcap cap_sys_admin+ep suid && ./suid -c 'echo owned >>$real/greet.txt'"
try "race a directory" "for n in 1 2 3 4 5 6 7 8 9; do rm -rf raced; mkdir raced; rmdir raced; ln -s '$real' raced; echo owned >>raced/greet.txt && exit 0; done; exit 1"
try "race the channel" "for n in 1 2 3 4 5 6 7 8 9; do ln -sfn '$real' \"\$COUNTERSIGN_SCRATCH\" && exit 0; done; exit 1"
rm -rf suid raced

# What tells the program about the scratch tree, and the scratch trees of others.
for file in ../state.json ../git/HEAD ../git/index ../apply.lock ../home/owned ../../owned; do try "write $file" "test -e '$file' && echo owned >>'$file'"; done
try "move the tree" "mv '$scratch' '$scratch.gone'"

echo "TRIED $tried"
