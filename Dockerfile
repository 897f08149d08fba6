# The image of the daemon: one static program FROM scratch, the certificates of authorities, licences and a bill of
# materials. It runs as a user without rights, and needs no writable file besides the folder of the mirror.
#
#   docker build -t mirador .    builds everything in a container
#   make image                   builds outside, and needs neither Docker nor a registry: the target "prebuilt" takes
#                                what it left in bin/image
ARG GO_IMAGE=docker.io/library/golang:1.26

FROM scratch AS base
ARG VERSION=unknown
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="mirador" \
      org.opencontainers.image.description="Mirrors a fleet of Kubernetes clusters and answers every read locally" \
      org.opencontainers.image.source="https://github.com/mirador-k8s/mirador" \
      org.opencontainers.image.documentation="https://github.com/mirador-k8s/mirador/blob/main/docs/operate.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
# A number, because a kubelet does not know the names of an image and must see that this is not root.
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["/mirador"]
CMD ["serve"]

FROM base AS prebuilt
ARG TARGETARCH
COPY bin/image/${TARGETARCH}/files/ /
COPY --chown=65532:65532 bin/image/${TARGETARCH}/data/ /data/

FROM --platform=${BUILDPLATFORM} ${GO_IMAGE} AS build
ARG TARGETARCH
ARG VERSION
WORKDIR /src
COPY . .
ENV GOCACHE=/go/build-cache
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/go/build-cache \
    go run ./dev/release image -platform linux/${TARGETARCH} -version "${VERSION}" -o /image

FROM base
COPY --from=build /image/files/ /
COPY --chown=65532:65532 --from=build /image/data/ /data/
