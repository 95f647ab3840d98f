#!/usr/bin/env bash
# Puts this action's program below RUNNER_TEMP and names it in the output "program". For the stage attest it does the same
# with countersign-sigstore, which signs without a key, and names that in the output "signer".
#
# Where the action's tree has checksums (.github/release/checksums.txt, only in the commit of a release), each is the released
# binary, and its digest must be the one written there. Else it is built from the action's own source.
# GITHUB_ACTION_PATH is the top of that tree, or its folder .github/action, which has an action too.
# Everything comes by environment: ACTION_REPOSITORY (owner/name, empty for a local action), STAGE and what the runner sets.
set -euo pipefail
unset COUNTERSIGN_TOKEN COUNTERSIGN_LEDGER_TOKEN COUNTERSIGN_SIGN_KEY COUNTERSIGN_SIGN_PASSPHRASE COUNTERSIGN_AGE_IDENTITY GITHUB_TOKEN GH_TOKEN # of the next step

source=${GITHUB_ACTION_PATH%[/\\].github[/\\]action}

say() { printf 'countersign: %s\n' "$*"; }

fail() {
	printf '::error::countersign: %s\n' "$*" >&2
	exit 1
}

sha256() { # of standard input: a name with a backslash would change the line that is printed
	if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c 1-64
}

asset() { # NAME: what the release calls it for this system, empty for a system without one
	local system arch
	case "${RUNNER_OS:-$(uname -s)}" in
	Linux) system=linux ;;
	macOS | Darwin) system=darwin ;;
	Windows) system=windows ;;
	*) return 0 ;;
	esac
	case "${RUNNER_ARCH:-$(uname -m)}" in
	X64 | x86_64) arch=amd64 ;;
	ARM64 | aarch64 | arm64) arch=arm64 ;;
	*) return 0 ;;
	esac
	printf '%s_%s_%s%s' "$1" "$system" "$arch" "$suffix"
}

expected() { # the digest of an asset, empty where this release has none
	local sum name
	while read -r sum name; do
		if [ "$name" = "$1" ]; then
			[[ $sum =~ ^[0-9a-f]{64}$ ]] || fail "checksums.txt: the line of $1 has no SHA-256"
			printf '%s' "$sum"
			return 0
		fi
	done <"$release/checksums.txt"
}

check() { # FILE DIGEST
	local have
	have=$(sha256 <"$1")
	[ "$have" = "$2" ] || fail "$(basename "$1" .part) has the SHA-256 $have, and must have $2: nothing is run"
}

download() { # ASSET DIGEST FILE
	local tag=
	read -r tag <"$release/tag" || true
	[[ $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail ".github/release/tag does not name a release"
	[[ $ACTION_REPOSITORY =~ ^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$ ]] || return 1
	rm -f "$3.part"
	curl --fail --silent --show-error --location --proto '=http,https' --proto-redir '=http,https' \
		--retry 3 --max-time 300 --max-filesize 200000000 --output "$3.part" \
		"$GITHUB_SERVER_URL/$ACTION_REPOSITORY/releases/download/$tag/$1" || return 1
	check "$3.part" "$2"
	chmod 755 "$3.part" && mv "$3.part" "$3"
}

build() { # MODULE PACKAGE FILE
	command -v go >/dev/null || fail "there is no Go on this runner to build with; install it, or use a release"
	if [ "${RUNNER_ENVIRONMENT:-}" = self-hosted ]; then # other jobs can write what a machine of one's own keeps
		export GOCACHE="$RUNNER_TEMP/countersign/cache" GOMODCACHE="$RUNNER_TEMP/countersign/modules"
	fi
	(cd "$source/$1" && CGO_ENABLED=0 GOFLAGS='' GOWORK=off \
		go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$3" "$2") || fail "$(basename "$3") could not be built from source: the action at the commit of a release downloads it"
	sha256 <"$3" >"$3.sha256"
}

get() { # NAME MODULE PACKAGE: sets got to the program's file
	local name digest='' released="$folder/released/$1$suffix" built="$folder/built/$1$suffix"
	name=$(asset "$1")
	if [ -f "$release/checksums.txt" ] && [ -n "$name" ]; then digest=$(expected "$name"); fi
	if [ -n "$digest" ]; then
		got=$released
		if [ -f "$released" ]; then
			check "$released" "$digest"
			say "using the released $name that an earlier step downloaded"
			return 0
		fi
		if download "$name" "$digest" "$released"; then
			say "using the released $name, SHA-256 $digest"
			return 0
		fi
		printf '::warning::countersign: the released %s could not be downloaded; it is built from source instead\n' "$name"
	fi
	got=$built
	if [ -f "$built" ] && [ -f "$built.sha256" ]; then
		check "$built" "$(cat "$built.sha256")"
		say "using the $1 that an earlier step built"
		return 0
	fi
	build "$2" "$3" "$built"
	say "$1 was built from source"
}

suffix=
if [ "${RUNNER_OS:-}" = Windows ]; then suffix=.exe; fi
release="$source/.github/release"
folder="$RUNNER_TEMP/countersign/$(printf '%s' "$source" | sha256)"
mkdir -p "$folder/released" "$folder/built"

get countersign . ./cmd/countersign
program=$got
signer=
if [ "${STAGE:-}" = attest ]; then
	get countersign-sigstore cmd/sigstore .
	signer=$got
fi
printf 'program=%s\nsigner=%s\n' "$program" "$signer" >>"$GITHUB_OUTPUT"
