# The program, and countersign-sigstore beside it, static, in an empty image, for no user in particular:
#   docker build -t countersign .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/repo" countersign list
# To look needs no --user where the files can be read by all; to write, the ledger must belong to the user.
# BUILDER needs Go and no shell. BASE can be anything; "scratch" has no certificates, so a remote over https needs those of
# the host: -v /etc/ssl/certs:/etc/ssl/certs:ro
ARG BUILDER=docker.io/library/golang:1.26
ARG BASE=scratch

FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
ENV CGO_ENABLED=0 GOFLAGS="" GOWORK=off
RUN ["go", "run", "./cmd/countersign/internal/verifier/build"]
RUN ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/out/countersign", "./cmd/countersign"]
RUN ["go", "build", "-C", "cmd/sigstore", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "/out/countersign-sigstore", "."]

FROM ${BASE}
COPY --from=build /out/countersign /out/countersign-sigstore /
USER 65534:65534
WORKDIR /repo
ENTRYPOINT ["/countersign"]
