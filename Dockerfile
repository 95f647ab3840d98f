# The program, and countersign-sigstore beside it, with Git and its ssh, for no user in particular:
#   docker build -t countersign .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/repo" countersign list
# To look needs no --user where the files can be read by all; to write, the ledger must belong to the user.
# BUILDER needs Go and no shell. BASE has Git, or a shell and Debian's packages. Of the two images a build takes only what it needs.
ARG BUILDER=go
ARG BASE=debian
FROM docker.io/library/golang:1.26.8@sha256:9d2f36f06329b2a141b9db99ffa32765cf695ee57b813ca29e245e8670bcbfff AS go
FROM docker.io/library/debian:trixie-20261005-slim@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f AS debian

FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
ENV CGO_ENABLED=0 GOFLAGS="" GOWORK=off
RUN ["go", "run", "./cmd/countersign/internal/verifier/build"]
RUN ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/out/countersign", "./cmd/countersign"]
RUN ["go", "build", "-C", "cmd/sigstore", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/out/countersign-sigstore", "."]

FROM ${BASE}
# A release adds its source, version and revision.
LABEL org.opencontainers.image.title=countersign \
      org.opencontainers.image.description="A human countersigns the exact bytes of a patch; a ledger in the repository proves it" \
      org.opencontainers.image.vendor="The Countersign authors" \
      org.opencontainers.image.licenses=Apache-2.0
RUN command -v git || { apt-get update && apt-get install -y --no-install-recommends git openssh-client ca-certificates && rm -rf /var/lib/apt/lists/*; }
COPY --from=build /out/countersign /out/countersign-sigstore /
# Whose the repository is that is mounted there, its mounter knows.
ENV GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=/repo
USER 65534:65534
WORKDIR /repo
ENTRYPOINT ["/countersign"]
