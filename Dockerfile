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
    cargo build --locked --release --no-default-features \
    && install -D target/release/vestibule /image/vestibule
# What it needs at run time: the C library, the certificates of public authorities, and where names are looked up.
RUN ldd /image/vestibule | grep -o '/[^ ]*' | xargs cp --dereference --parents --target-directory=/image \
    && install -D --mode=644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \
    && echo 'hosts: files dns' >/image/etc/nsswitch.conf

FROM scratch
COPY --from=build /image /
# Inside a container, 127.0.0.1 is reached from nowhere else.
ENV ROCKET_ADDRESS=0.0.0.0
EXPOSE 8000
USER 65532:65532
HEALTHCHECK --interval=5s --timeout=7s --start-period=30s CMD ["/vestibule", "health"]
ENTRYPOINT ["/vestibule"]
