#!/bin/sh
set -eu
tx=$1 ref=${2:-refs/agent/ledger}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C GIT_LITERAL_PATHSPECS=1 GIT_NO_REPLACE_OBJECTS=1 GIT_GRAFT_FILE="$tmp/none"
fail() { echo "NOT VERIFIED $tx: $*" >&2; exit 1; }
sum() { sha256sum | cut -d' ' -f1; }
show() { git cat-file blob "$tip:$dir/$1" 2>/dev/null || fail "$1 is missing"; }
events() { jq -es --arg tx "$tx" --arg p "${patch:-}" "$1" "$tmp/events" >"$tmp/out" || fail "$2"; }

# The history: all of it is here, one line, one root.
case $tx in tx_*[!0-9A-Z]* | tx_) fail "not a transaction id" ;; tx_*) ;; *) fail "not a transaction id" ;; esac
tip=$(git rev-parse --verify --quiet "$ref^{commit}") || fail "there is no $ref"
[ "$(git rev-parse --is-shallow-repository)" = false ] || fail "the clone is shallow"
git rev-list "$tip" >"$tmp/history" || fail "commits are missing"
[ -z "$(git rev-list --min-parents=2 "$tip")" ] || fail "the history has merges"
[ "$(git rev-list --max-parents=0 "$tip" | wc -l)" -eq 1 ] || fail "the history has not one root"
dir=$(git ls-tree -r -d --name-only "$tip" transactions | grep "/$tx\$") || fail "not in $ref"
[ "$(echo "$dir" | wc -l)" -eq 1 ] || fail "is there twice"
hex=$(printf %s "$tx" | sum | cut -c1-2)
case $dir in transactions/[0-9][0-9][0-9][0-9]/[0-9][0-9]/[0-9][0-9]/"$hex/$tx") ;; *) fail "is at a wrong place" ;; esac

# Its directory was only ever added to; events.jsonl only grew at its end.
for commit in $(git rev-list --reverse "$tip" -- "$dir"); do
  git diff-tree --root -r --no-renames --no-commit-id "$commit" -- "$dir" >"$tmp/changes"
  while read -r _ mode old new how path; do
    case $path in "$dir/README.md" | "$dir/README.md/"*) continue ;; esac # a page proves nothing
    [ "$mode" = 100644 ] || [ "$how" = D ] || fail "$path has mode $mode in $commit"
    case $how:$path in
    A:* | M:"$dir/transaction.json") ;;
    M:"$dir/events.jsonl")
      git cat-file blob "$old" >"$tmp/old"
      git cat-file blob "$new" | head -c "$(wc -c <"$tmp/old")" | cmp -s - "$tmp/old" || fail "events were changed in $commit" ;;
    *) fail "$path was changed or removed in $commit" ;;
    esac
  done <"$tmp/changes"
done

# Every event holds the hash of the one before.
show events.jsonl >"$tmp/events"
[ -z "$(tail -c 1 "$tmp/events")" ] || fail "the last event is cut short"
jq -r '"\(.seq) \(.prev)"' "$tmp/events" >"$tmp/links" || fail "events are not JSON"
n=0 prev=null
while IFS= read -r line && read -r link <&3; do
  n=$((n + 1))
  [ "$link" = "$n $prev" ] || fail "the chain is broken at event $n"
  prev=sha256:$(printf '%s\n' "$line" | sum)
done <"$tmp/events" 3<"$tmp/links"
[ "$n" -eq "$(wc -l <"$tmp/events")" ] || fail "the chain ends early"
events 'all(.payload.transaction_id == $tx)' "has an event of another transaction"
show transaction.json >"$tmp/state"
jq -e --arg tx "$tx" --slurpfile e "$tmp/events" '.transaction_id == $tx and .proposer == $e[0].payload.proposer and .updated_at == $e[-1].timestamp
  and .status == ([$e[] | select(.type == "tx/status").payload.to] | last) and .closed == any($e[]; .type == "tx/close")' "$tmp/state" >/dev/null ||
  fail "transaction.json is not what the events say"

# One patch; its bytes hash to its name; whoever decided, decided on that name.
patch=$(jq -rs '[.[] | select(.type == "turn/item").payload.item.metadata.patch_id // empty] | unique | if length == 1 then .[0] else "" end' "$tmp/events")
[ "$(show "patches/$patch.diff" | sum)" = "$patch" ] || fail "the patch does not hash to its id"
events '([.[] | select(.type == "approval/request").payload.approval_request_id] | sort) as $asked
  | [.[] | select(.type == "approval/decision").payload] | all(.fingerprint == "patchset:" + $p)
    and (map(.approval_request_id) | unique | length) == length and (map(.approval_request_id) - $asked) == []' "a decision is not on this patch"
events '(map(.type == "apply/start") | index(true)) as $start | [1, .[0].payload.approval_policy.required] as $need
  | $start == null or ([.[:$start][] | select(.type == "approval/decision").payload]
    | all(.decision == "approve") and (map(.source.author.id) | unique | length) >= ($need | max))' "was applied without every approval"
if jq -es 'any(.type == "approval/decision" and .payload.decision == "deny")' "$tmp/events" >/dev/null; then
  [ -n "$(git ls-tree "$tip" "denied/$(echo "$patch" | cut -c1-2)/$patch/")" ] || fail "its denial is not in denied/"
fi

# The evidence hashes to its names, and nothing else is there.
printf '%s\n' events.jsonl transaction.json "patches/$patch.diff" >"$tmp/files"
jq -r 'select(.type == "artifact/stored").payload | "\(.artifact_id) \(.path) \(.stored_sha256)"' "$tmp/events" >"$tmp/artifacts"
while read -r id path stored; do
  [ "$path" = "artifacts/$id.json" ] && [ "$stored" = "sha256:$id" ] || fail "$path is not where it belongs"
  [ "$(show "$path" | sum)" = "$id" ] || fail "$path does not hash to its id"
  echo "$path" >>"$tmp/files"
done <"$tmp/artifacts"

# A decision that was signed: the recorded signature is good, by the recorded line of the key, for this decision, when it was made and recorded.
jq -r 'select(.type == "approval/decision" and .payload.source.signature) | .payload.source.signature as $s | [$s.statement, $s.signature, $s.key, .payload.approval_request_id,
  (.timestamp | .[:19] | gsub("[^0-9]"; "")), $s.key_fingerprint, $s.principal] | join(" ")' "$tmp/events" >"$tmp/signed"
while read -r statement signature key request recorded print principal; do
  command -v ssh-keygen >/dev/null || fail "a decision is signed, and there is no ssh-keygen"
  for path in "$statement" "$signature" "$key"; do grep -q " $path " "$tmp/artifacts" || fail "$path is not recorded"; done
  show "$statement" >"$tmp/statement"
  show "$signature" | jq -j .armored >"$tmp/signature"
  show "$key" | jq -r .line >"$tmp/allowed"
  [ "$(wc -l <"$tmp/allowed")" -eq 1 ] || fail "$key is not one line"
  jq -es --arg tx "$tx" --arg p "$patch" --arg r "$request" --arg n "$principal" --slurpfile s "$tmp/statement" '[.[].payload] as $all | $s[0] as $s
    | ($all[] | select(.approval_request_id == $r and .prompt)) as $asked | ($all[] | select(.approval_request_id == $r and .decision)) as $d
    | ([$all[].item? | select(.type? == "fileChange").metadata.requested_by // empty] | last) as $asks
    | $s.schema == "countersign/decision/2" and $s.transaction_id == $tx and $s.base_commit == $all[0].base_commit and $s.reason == ($d.reason // "")
    and $s.decision == (if $asked.kind == "break_glass" and $d.decision == "approve" then "break-glass" else $d.decision end)
    and ($s.fingerprints | index($d.fingerprint)) != null and all($s.fingerprints[]; endswith("patchset:" + $p))
    and $s.policy.sha256 == $d.policy.sha256 and any($all[]; .policy == $s.policy) and ($s.proposers | index($all[0].proposer)) != null
    and (($asks // []) - $s.requested_by) == [] and [$s.shown] == [$all[] | select(.kind == "risks" and .stored_sha256).stored_sha256]
    and ($d.source | if .kind == "local" then "local:" + $n == .author.id else $n == .author.login or $n == "github:" + .author.login end)' "$tmp/events" >/dev/null ||
    fail "a statement that was signed is not on this decision"
  for at in "$(jq -r '.decided_at | gsub("[^0-9]"; "")' "$tmp/statement")" "$recorded"; do
    TZ=UTC ssh-keygen -Y verify -f "$tmp/allowed" -I "$principal" -n countersign-decision@v2 -s "$tmp/signature" -O verify-time="$at" \
      <"$tmp/statement" >"$tmp/good" 2>&1 || fail "a signature is not good: $(tail -n 1 "$tmp/good")"
    grep -qF "$print" "$tmp/good" || fail "a signature is by another key than $print"
  done
done <"$tmp/signed"

# What was applied is what was approved, and what the commit holds.
done=$(jq -rs '[.[] | select(.type == "apply/complete" and .payload.success).payload] | last // empty | "\(.apply_artifact) \(.target) \(.commit_after)"' "$tmp/events")
if [ -n "$done" ]; then
  read -r artifact target commit <<END
$done
END
  echo apply_result.json >>"$tmp/files"
  show apply_result.json >"$tmp/result"
  show "$artifact" | jq -e --slurpfile r "$tmp/result" '.apply_result == $r[0]' >/dev/null || fail "apply_result.json is not what was recorded"
  jq -e --slurpfile s "$tmp/state" '.outcome == "SUCCESS" and ($s[0].pointers.proposal as $p | (.operation_results | map({(.path): .after_hash}) | add) == $p.after_sha256_by_path)' \
    "$tmp/result" >/dev/null || fail "the result is not what was approved"
  jq -r '.operation_results[] | "\(.after_hash) \(.path)"' "$tmp/result" >"$tmp/after"
  if [ -n "$commit" ] && git cat-file -e "$commit" 2>/dev/null; then
    while read -r hash path; do
      if [ "$hash" = null ]; then
        ! git cat-file -e "$commit:$path" 2>/dev/null || fail "$path is still in $commit"
      else
        [ "sha256:$(git cat-file blob "$commit:$path" | sum)" = "$hash" ] || fail "$path in $commit is not as approved"
      fi
    done <"$tmp/after"
  elif [ "$target" = worktree ] && root=$(git rev-parse --show-toplevel 2>/dev/null); then
    while read -r hash path; do # it may have gone on since
      [ ! -f "$root/$path" ] || [ "sha256:$(sum <"$root/$path")" = "$hash" ] || echo "note: $path is not as it was applied" >&2
    done <"$tmp/after"
  fi
fi
sort -u "$tmp/files" >"$tmp/want"
git ls-tree -r --name-only "$tip:$dir" | grep -v '^README\.md' | sort | cmp -s - "$tmp/want" || fail "there are files that no event names, or some are missing"
git ls-tree -r "$tip" -- "$dir" | grep -vF "	$dir/README.md" | grep -qv '^100644 blob' && fail "something is not a plain file"

jq -rs --arg tx "$tx" --arg p "$patch" '"verified \($tx): \(last(.[] | select(.type == "tx/status")).payload.to), patch \($p)",
  (.[] | select(.type == "approval/decision").payload | "  \(.decision) by \(.source.author.login | @json) (\(.source.author.id | @json))" + (.source.signature | if . then ", signed by \(.key_fingerprint)" else "" end))' "$tmp/events"
