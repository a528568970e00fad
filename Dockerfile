# docker build -t sheafdb .
# docker run -p 127.0.0.1:6379:6379 -p 127.0.0.1:9379:9379 --security-opt seccomp=packaging/docker/seccomp.json sheafdb [OPTIONS]
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc make libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p sheafdb-server -p sheafdb-bench

FROM debian:bookworm-slim
RUN groupadd --system --gid 999 sheafdb \
 && useradd --system --uid 999 --gid sheafdb --home-dir /data --no-create-home sheafdb \
 && mkdir /data && chown sheafdb:sheafdb /data
COPY --from=build /src/target/release/sheafdb /src/target/release/sheafdb-bench /usr/local/bin/
COPY packaging/docker/entrypoint.sh /usr/local/bin/docker-entrypoint.sh
COPY packaging/sheafdb.conf /usr/local/share/sheafdb/sheafdb.conf
WORKDIR /data
VOLUME /data
USER sheafdb
EXPOSE 6379 9379
STOPSIGNAL SIGTERM
ENTRYPOINT ["docker-entrypoint.sh"]
