# syntax=docker/dockerfile:1
# The service in an image with nothing else in it: no shell, no package manager, no development parts.
#
#     docker build -t vestibule .
#
# deploy/compose.yaml runs it with a PostgreSQL.

# The image's own C compiler is all that the build needs beside Rust.
FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /vestibule
# The commit for `--version` and the metrics: --build-arg VESTIBULE_COMMIT=$(git rev-parse HEAD)
ARG VESTIBULE_COMMIT
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/vestibule/target \
    cargo build --locked --release \
    && deploy/image/root target/release/vestibule /image

FROM scratch
LABEL org.opencontainers.image.title="Vestibule" org.opencontainers.image.licenses="MIT OR Apache-2.0" \
    org.opencontainers.image.description="Sign in with an identity provider's token"
COPY --from=build /image /
# Inside a container, 127.0.0.1 is reached from nowhere else.
ENV ROCKET_ADDRESS=0.0.0.0
EXPOSE 8000
USER 65532:65532
HEALTHCHECK --interval=5s --timeout=7s --start-period=30s CMD ["/vestibule", "health"]
ENTRYPOINT ["/vestibule"]
