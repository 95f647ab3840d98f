#!/usr/bin/env bash
# Builds a release: release.sh TAG FOLDER. The same source and Go give the same bytes on any machine. FOLDER gets a program for each
# of six systems, checksums.txt, the tag, and what each program is made of as CycloneDX JSON. Needs Go, Git and jq.
set -euo pipefail
tag=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."

export GOTOOLCHAIN=go1.26.8 CGO_ENABLED=0 GOFLAGS='' GOWORK=off GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT=''
for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	name=countersign_${target%/*}_${target#*/}
	file=$name
	if [ "${target%/*}" = windows ]; then file=$name.exe; fi
	GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$out/$file" ./cmd/countersign
	go version -m -json "$out/$file" | jq -S --arg version "$tag" --arg sum "$(sha256sum <"$out/$file" | cut -c 1-64)" '
		def component: {type: "library", name: .Path, version: .Version, purl: "pkg:golang/\(.Path)@\(.Version)"};
		(.Deps // [] | map(if .Replace then .Replace else . end)) as $modules |
		{bomFormat: "CycloneDX", specVersion: "1.5", version: 1,
		 metadata: {component: {type: "application", name: "countersign", version: $version, hashes: [{alg: "SHA-256", content: $sum}]}},
		 components: ([$modules[] | component] + [{type: "library", name: "stdlib", version: .GoVersion, purl: "pkg:golang/std@\(.GoVersion[2:])"}])}
	' >"$out/$name.cdx.json"
done
printf '%s\n' "$tag" >"$out/tag"
(cd "$out" && sha256sum countersign_*_amd64 countersign_*_arm64 countersign_*.exe >checksums.txt)
