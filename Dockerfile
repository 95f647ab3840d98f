# A static binary in an empty image:
#   docker build -t countersign . && docker run --rm -v "$PWD:/repo" countersign list
# BUILDER needs Go and BASE can be anything that holds a static program.
ARG BUILDER=docker.io/library/golang:1.26
ARG BASE=scratch
FROM ${BUILDER} AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /countersign ./cmd/countersign

FROM ${BASE}
COPY --from=build /countersign /countersign
USER 65534:65534
WORKDIR /repo
ENTRYPOINT ["/countersign"]
