"""The records of the pages (J-13): transaction.md, policy.md, signatures.md, history.md."""
from cjson import shapes

shapes('''
actor: id text, kind text, login text
ref: commit text, sha256 text
repo: id text, name text
requester: actor actor, source
 "actions.sender/actions.triggering_actor/workflow_run.actor/workflow_run.triggering_actor/gh-aw/flag/rpc/mcp"
event: seq int, prev text|null, timestamp text, type text, payload object
source: author actor, body_sha256 text, commit text, created_at text, evidence? text, id text, kind text, permission text, signature? sign, url text
sign: key text, key_fingerprint text, principal text, signature text, statement text
approval_policy: local bool, required int
sandbox_policy: network_access bool, type text, writable_roots text[]
entry: fingerprint text, kind text, required int
tx/meta: approval_policy approval_policy, base_commit text, cwd text, policy_commit text, proposer actor, sandbox_policy sandbox_policy, summary text,
 transaction_id text, workspace_roots text[]
tx/status: from text, reason text, to text, transaction_id text
turn/start: input text, mode text, turn_id text, transaction_id text
turn/item: item object, turn_id text, transaction_id text
artifact/stored: artifact_id text, content_type text, kind text, path text, redacted bool, stored_sha256 text, transaction_id text
approval/request: approval_request_id text, fingerprint text, item_id text, kind text, policy ref, prompt text, turn_id text, transaction_id text
approval/decision: approval_request_id text, decision "approve/deny", fingerprint text, policy ref, reason? text, source source, transaction_id text
apply/start: apply_id text, approvals entry[], base_commit text, files text[], patch_ids text[], policy ref, target text, transaction_id text
apply/complete: apply_artifact text, apply_id text, commit_after text, commit_before text, outcome text, success bool, target text, transaction_id text
validate/start: validate_id text, transaction_id text
validate/complete: findings? text, success bool, validate_id text, transaction_id text
tx/close: status "completed/interrupted/denied/superseded", transaction_id text
change: from? text, kind text, path text, unified_diff text
step: id text+, status "pending/inProgress/completed/skipped/failed", title text
art: artifact_id text, path text
general: changes? change[], id text+, metadata? proposal, op? text, patchId? text, status? "inProgress/completed/failed/cancelled", steps? step[],
 type text+, unified_diff? text
command: aggregatedOutput text, command text, cwd text, durationMs int, exitCode int, id text+, metadata command_meta, op text,
 status "completed/failed", type "commandExecution"
command_meta: artifact art, required bool, tree text, when text
trace: aggregatedOutput? text, command?? text, content?? text, cwd? text, durationMs?? int, exitCode?? int, id text+, metadata trace_meta,
 op text, server?? text, status? text, steps? step[], summary?? text, tool?? text, type text
trace_meta: artifact art, ended_at? text, output_bytes? int, paths? text[], source "trace/claimed", started_at? text, step int, steps int
git_author: date text, email text, name text+
proposal: after_sha256_by_path map(text|null), base_sha256_by_path map(text|null), applied bool, contains_secret_introductions bool, base_commit text,
 kind text, needle text, patch_fingerprint text, patch_id hex64, policy_sha256 text, workspace_root text, target_files text[], author? git_author,
 authors? actor[], authors_complete? bool, requires_approval?? bool, checks? text, head_commit? text, message? text, patch_redacted_sha256? text,
 patch_sealed_sha256? text, proposal_item_id? text, proposal_turn_id? text, source_proposal_hash? text, source_proposal_id? text, confidence?? int,
 declared? text[], supersedes? text[], pull_request? int, repository? repo, requested_by? requester[]
risk: detail? text, from? text, kind text, lines? int[], more? int, path text
risks: more map(int), patch_id text, risks risk[], schema =risks
result_op: after_hash hash|null, before_hash hash|null, bytes_written int, error? text, op "create/modify/delete", path text,
 status "success/skipped/error"
violation: message text, path? text, rule_id text
patch_source: proposal_hash text, proposal_id text
result_sum: failed int, skipped int, succeeded int, total_bytes_written int, total_operations int
apply_result: apply_schema_version text+, dry_run bool, error? text, operation_results result_op[], outcome "SUCCESS", patch_source patch_source,
 summary result_sum, target_root text, violations? violation[]
findings: more? int, schema =findings, violations violation[]
input: bytes int, format? text, kind text+, sha256? text, via? text
proposer: id text+, kind text+, login text
proposed_again: author? git_author, base_commit text, declared? text[], input input, message? text, patch_id text, proposer proposer,
 requested_by? requester[], schema =proposed_again, summary? text, tool text, trace? text
elsewhere: proposer proposer, requested_by? requester[], transaction_id text
proposed_elsewhere: patch_id text, proposals elsewhere[], schema =proposed_elsewhere
merge: base text+, head_commit hex40, merge_commit hex40, merged_at text, pull_request int, repository repo, schema =merge
policy: commit text, found bool, policy text, schema =policy, sha256 text
standing: decisions stand[], head_commit text, owners map(text[]), policy ref, pull_request int, read_at text, schema =standing, teams map(text[])
stand: approval_request_id text, permission text, reason text, role text, stands bool
drift: schema =drift, since since[], to text
since: commits int, files int, from text, names text[], same_directory int, to text, unknown? text
statement: access access, command cmd, native? bool, schema =statement, statement said, text text
access: permission text, role text
cmd: break_glass? bool, fingerprint? text, reason? text, signed? bool, verb text
said: app? text, author actor, body text, commit? text, created_at text, earlier? text[], edited bool, email? bool, gone? bool, hidden? bool,
 id text, kind text, reply_to? text, state? text, untold? bool, url text
signature: armored text, schema =signature
key: line text, schema =key
ledger: created_at text, schema_version text
ledger/version: author actor, from text, reason text, version text
ledger/accept_tip: accepted_tip text, author actor, reason text, remembered_tip text
signed_repo: id text+, name text+
decision: schema text, repository? signed_repo, pull_request int, transaction_id text+, base_commit text+, decision "approve/deny/break-glass",
 fingerprints text[], reason text, decided_at text, shown hash, proposers proposer[], requested_by requester[], policy signed_ref
signed_ref: commit text+, sha256 hash
said_signed: signature text, statement object
''')
