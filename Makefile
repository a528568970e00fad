# `make` alone lists the targets.
CARGO ?= cargo
ARGS ?=
PERF_ARGS ?=
BENCH_ARGS ?=
SOAK_ARGS ?=
SWARM_ARGS ?= --hours 100000
CRASH_KILLS ?= 5000
PREFIX ?= /usr/local
DESTDIR ?=
# A system-wide installation is configured in /etc.
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)
BINDIR = $(PREFIX)/bin
DOCDIR = $(PREFIX)/share/doc/sheafdb
CONF = $(DESTDIR)$(SYSCONFDIR)/sheafdb/sheafdb.conf
UNIT = sed -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|@DOCDIR@|$(DOCDIR)|g' packaging/sheafdb.service.in
PERF_SHEAFDB ?= target/release/sheafdb --port {port} --unixsocket {sock} --dir {dir} --threads 1 --admin-port 0 --save ""

.DEFAULT_GOAL := help
.PHONY: help run build test timing deps perf bench soak swarm crash fmt install uninstall deb

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

run: ## build in release mode and start the server; ARGS="--port 7000"
	@$(CARGO) build --release -p sheafdb-server
	@exec target/release/sheafdb $(ARGS)

build: ## build target/release/sheafdb and target/release/sheafdb-bench
	$(CARGO) build --release -p sheafdb-server -p sheafdb-bench

test: ## everything: format, lints, tidy, unit, golden, differential, fuzz, client tests
	@tools/deps.sh ensure
	$(CARGO) xtask ci

timing: ## on a quiet machine: tests that judge by the clock with the promised limits, and sets of ten million members
	STEPS_STRICT=1 $(CARGO) test --release -p sheafdb-server --test worker -- --nocapture steps::
	SHEAFDB_TIMING=1 $(CARGO) test -p sheafdb-bench
	SHEAFDB_MEMBERS=10000000 SHEAFDB_PROFILE=release $(CARGO) test -p sheafdb-tests --test all suite::stalls::

deps: ## install what the tests need (redis-server, redis_exporter, strace, valgrind, chromium, redis-py, celery, ioredis, socket.io)
	@tools/deps.sh install

perf: ## compare with redis-server and with a server that does nothing; PERF_ARGS="--reps 7 --secs 1"
	@$(CARGO) build --release -p sheafdb-server
	@mkdir -p target
	@gcc -O3 -march=native -w -o target/null_epoll tools/perf/null_epoll.c
	tools/perf/compare.py --points core $(PERF_ARGS) redis 'sheafdb=$(PERF_SHEAFDB)' 'null=target/null_epoll {port} {sock}'

bench: ## the laboratory's five experiments in one report (target/lab.html), then SET and GET beside redis-server
	@$(CARGO) build --release -p sheafdb-server -p sheafdb-bench
	@tools/perf/bench.sh $(BENCH_ARGS)

soak: build ## an hour of mixed load and whether memory stays flat; SOAK_ARGS="--seconds 600"
	tools/soak.py $(SOAK_ARGS)

swarm: ## simulated worlds, one seed after the other, until stopped; SWARM_ARGS="--hours 2 --from 1000000"
	$(CARGO) xtask sim $(SWARM_ARGS)

crash: ## kill the server thousands of times while it writes its append-only file; CRASH_KILLS=20000
	CRASH_KILLS=$(CRASH_KILLS) CRASH_ROUNDS=200 $(CARGO) test -p sheafdb-tests --test all -- --nocapture suite::crash::

fmt: ## format the sources
	$(CARGO) fmt --all

install: build ## install under PREFIX=/usr/local (DESTDIR= is put in front)
	install -D -m 755 -s target/release/sheafdb $(DESTDIR)$(BINDIR)/sheafdb
	install -D -m 755 -s target/release/sheafdb-bench $(DESTDIR)$(BINDIR)/sheafdb-bench
	ln -sf sheafdb $(DESTDIR)$(BINDIR)/sheafdb-check-rdb
	ln -sf sheafdb $(DESTDIR)$(BINDIR)/sheafdb-check-aof
	install -D -m 644 README.md $(DESTDIR)$(DOCDIR)/README.md
	install -D -m 644 CHANGELOG.md $(DESTDIR)$(DOCDIR)/CHANGELOG.md
	install -D -m 644 packaging/sheafdb.conf $(DESTDIR)$(DOCDIR)/sheafdb.conf
	test -e $(CONF) || install -D -m 640 packaging/sheafdb.conf $(CONF)
	install -D -m 644 packaging/sheafdb.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/sheafdb.conf
	mkdir -p $(DESTDIR)$(PREFIX)/lib/systemd/system
	$(UNIT) > $(DESTDIR)$(PREFIX)/lib/systemd/system/sheafdb.service

uninstall: ## remove what install put there; a configuration that was changed stays
	@! cmp -s packaging/sheafdb.conf $(CONF) || rm -f $(CONF)
	rm -f $(DESTDIR)$(BINDIR)/sheafdb $(DESTDIR)$(BINDIR)/sheafdb-bench
	rm -f $(DESTDIR)$(BINDIR)/sheafdb-check-rdb $(DESTDIR)$(BINDIR)/sheafdb-check-aof
	rm -f $(DESTDIR)$(PREFIX)/lib/sysusers.d/sheafdb.conf $(DESTDIR)$(PREFIX)/lib/systemd/system/sheafdb.service
	rm -rf $(DESTDIR)$(DOCDIR)
	@rmdir $(DESTDIR)$(SYSCONFDIR)/sheafdb 2>/dev/null || true

deb: build ## a Debian package in target/debian (needs cargo-deb, which is installed if it is missing)
	@$(CARGO) deb --version >/dev/null 2>&1 || $(CARGO) install --locked --debug cargo-deb
	@mkdir -p target/packaging
	@$(MAKE) --silent unit PREFIX=/usr > target/packaging/sheafdb.service
	@ln -sf ../release/sheafdb target/packaging/sheafdb
	@for name in rdb aof; do ln -sf sheafdb target/packaging/sheafdb-check-$$name; done
	$(CARGO) deb -p sheafdb-server --no-build

.PHONY: unit
unit: # the systemd unit for PREFIX
	@$(UNIT)
