#!/usr/bin/env bash
# Installs what the tests need, or says what is missing. Idempotent; a fraction of a second when all is there.
#
#   tools/deps.sh install   install what is missing (make deps)
#   tools/deps.sh check     print what is missing; exit 1 if anything is
#   tools/deps.sh ensure    check; as root or with CI=true install, otherwise name the command and exit 1
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=.venv
CLIENTS=tests/clients
VENV_STAMP=$VENV/.requirements
NODE_STAMP=$CLIENTS/node_modules/.package-lock-used

have() { command -v "$1" >/dev/null 2>&1; }

# Debian packages that are missing, one per line.
missing_packages() {
    have redis-server || echo redis-server
    have redis-cli || echo redis-tools
    have valgrind || echo valgrind
    have gcc || echo gcc
    have c++ || echo g++
    have strace || echo strace
    have prometheus-redis-exporter || echo prometheus-redis-exporter
    have taskset || echo util-linux
    have python3 || echo python3
    # Debian's python3 comes without ensurepip; then a virtual environment has no pip.
    if [ ! -x "$VENV/bin/python" ]; then
        python3 -c 'import ensurepip' >/dev/null 2>&1 || echo python3-venv
    fi
    have node || echo nodejs
    have chromium || have chromium-browser || have google-chrome || echo chromium
    have_font || echo fonts-dejavu-core
    node_is_current || have npm || echo npm
}

# Any font: without one a browser draws no text.
have_font() {
    find /usr/share/fonts /usr/local/share/fonts -name '*.[to]tf' -print -quit 2>/dev/null | grep -q .
}

missing_components() {
    have rustup || return 0 # a toolchain without rustup has them or brings them its own way
    cargo fmt --version >/dev/null 2>&1 || echo rustfmt
    cargo clippy --version >/dev/null 2>&1 || echo clippy
}

venv_is_current() { [ -x "$VENV/bin/python" ] && cmp -s "$CLIENTS/requirements.txt" "$VENV_STAMP"; }
node_is_current() { [ -d "$CLIENTS/node_modules/ioredis" ] && cmp -s "$CLIENTS/package-lock.json" "$NODE_STAMP"; }

missing() {
    missing_packages
    missing_components | sed 's/^/rustup component /'
    venv_is_current || echo "python environment $VENV (redis-py, celery, prometheus_client, websocket-client)"
    node_is_current || echo "node modules in $CLIENTS (ioredis, socket.io)"
}

install_packages() {
    local sudo=""
    if [ "$(id -u)" != 0 ]; then
        have sudo || { echo "deps: need root for: apt-get install $*" >&2; exit 1; }
        sudo=sudo
    fi
    # While this file answers 101, package scripts start no service.
    local policy=/usr/sbin/policy-rc.d made=""
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
        $sudo chmod 755 $policy
        made=yes
        # shellcheck disable=SC2064  # as they are now
        trap "$sudo rm -f $policy" EXIT
    fi
    local rc=0
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null || rc=$?
    [ $rc != 0 ] || $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@" </dev/null || rc=$?
    if [ -n "$made" ]; then
        $sudo rm -f $policy
        trap - EXIT
    fi
    return $rc
}

install_all() {
    local packages components
    packages=$(missing_packages)
    # shellcheck disable=SC2086  # a list of words
    [ -z "$packages" ] || install_packages $packages
    components=$(missing_components)
    # shellcheck disable=SC2086
    [ -z "$components" ] || rustup component add $components
    if ! venv_is_current; then
        [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || {
            rm -rf "$VENV"
            python3 -m venv "$VENV"
        }
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -r "$CLIENTS/requirements.txt"
        cp "$CLIENTS/requirements.txt" "$VENV_STAMP"
    fi
    if ! node_is_current; then
        (cd "$CLIENTS" && npm ci --silent --no-audit --no-fund </dev/null)
        cp "$CLIENTS/package-lock.json" "$NODE_STAMP"
    fi
}

case "${1:-install}" in
    install)
        install_all
        left=$(missing)
        [ -z "$left" ] || { printf 'deps: still missing:\n%s\n' "$left" >&2; exit 1; }
        ;;
    check)
        left=$(missing)
        [ -z "$left" ] || { printf '%s\n' "$left"; exit 1; }
        ;;
    ensure)
        left=$(missing)
        [ -n "$left" ] || exit 0
        if [ "$(id -u)" = 0 ] || [ "${CI:-}" = true ]; then
            exec "$0" install
        fi
        printf 'The tests need what is missing here:\n%s\nInstall it with:\n\n    make deps\n\n' "$left" >&2
        exit 1
        ;;
    *) sed -n '2,7p' "$0" >&2; exit 2 ;;
esac
