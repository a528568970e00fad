# `make` alone lists the targets.
CARGO ?= cargo
ARGS ?=
PERF_ARGS ?=
PERF_SHEAFDB ?= target/release/sheafdb --port {port} --unixsocket {sock} --dir {dir} --threads 1 --save ""

.DEFAULT_GOAL := help
.PHONY: help run build test deps perf fmt

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

run: ## build in release mode and start the server; ARGS="--port 7000"
	@$(CARGO) build --release -p sheafdb-server
	@exec target/release/sheafdb $(ARGS)

build: ## build target/release/sheafdb
	$(CARGO) build --release

test: ## everything: format, lints, tidy, unit, golden, differential, fuzz, client tests
	@tools/deps.sh ensure
	$(CARGO) xtask ci

deps: ## install what the tests need (redis-server, valgrind, chromium, redis-py, ioredis)
	@tools/deps.sh install

perf: ## compare with redis-server and with a server that does nothing; PERF_ARGS="--reps 7 --secs 1"
	@$(CARGO) build --release -p sheafdb-server
	@mkdir -p target
	@gcc -O3 -march=native -w -o target/null_epoll tools/perf/null_epoll.c
	tools/perf/compare.py --points core $(PERF_ARGS) redis 'sheafdb=$(PERF_SHEAFDB)' 'null=target/null_epoll {port} {sock}'

fmt: ## format the sources
	$(CARGO) fmt --all
