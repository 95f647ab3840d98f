# The program, and countersign-sigstore beside it, with Git and its ssh, for no user in particular:
#   docker build -t countersign .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/repo" countersign list
# To look needs no --user where the files can be read by all; to write, the ledger must belong to the user.
# BUILDER needs Go and no shell. BASE has Git, or a shell and Debian's packages.
ARG BUILDER=docker.io/library/golang:1.26
ARG BASE=docker.io/library/debian:trixie-slim

FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
ENV CGO_ENABLED=0 GOFLAGS="" GOWORK=off
RUN ["go", "run", "./cmd/countersign/internal/verifier/build"]
RUN ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/out/countersign", "./cmd/countersign"]
RUN ["go", "build", "-C", "cmd/sigstore", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/out/countersign-sigstore", "."]

FROM ${BASE}
RUN command -v git || { apt-get update && apt-get install -y --no-install-recommends git openssh-client ca-certificates && rm -rf /var/lib/apt/lists/*; }
COPY --from=build /out/countersign /out/countersign-sigstore /
# Whose the repository is that is mounted there, its mounter knows.
ENV GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=/repo
USER 65534:65534
WORKDIR /repo
ENTRYPOINT ["/countersign"]
