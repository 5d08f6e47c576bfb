# The operator alone, as a static binary: run, explain, rules, crds, graph. No sandbox, no shell, nothing to update.
FROM rust:1.95.0-slim-trixie AS build
WORKDIR /src
COPY . .
# The C parts of the TLS library are compiled by the machine's own compiler; they call nothing of a C library.
RUN set -eu; \
    target="$(uname -m)-unknown-linux-musl"; \
    rustup target add "$target"; \
    CC=gcc cargo build --locked --release --target "$target" --no-default-features --features shell; \
    install -D "target/$target/release/cocoon-operator" /out/cocoon-operator

FROM scratch
LABEL org.opencontainers.image.title="cocoon-operator" \
      org.opencontainers.image.licenses="Apache-2.0"
# Registries are trusted by these; mount others over them, or name them in SSL_CERT_FILE.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/cocoon-operator /cocoon-operator
USER 65532:65532
EXPOSE 8080 8081
# The flags of the Deployment are those of `run`; --entrypoint /cocoon-operator reaches the other commands.
ENTRYPOINT ["/cocoon-operator", "run"]
