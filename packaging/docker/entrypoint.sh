#!/bin/sh
# Nothing, options or a configuration file: the server with them. Anything else is run as it stands.
set -eu
case "${1:-}" in
    # These stand first, and start nothing.
    -v | --version | -h | --help | --check-config) exec sheafdb "$@" ;;
    '' | -*)
        # A container is reached from outside; whoever publishes its ports decides from where. Options of the user come later and win.
        port='' admin='' before=''
        for word in "$@"; do
            case "$before" in --port) port=$word ;; --admin-port) admin=$word ;; esac
            before=$word
        done
        # With port 0 naming an address would open the admin port, which nobody asked for.
        if [ "$port" = 0 ] && [ -z "$admin" ]; then
            exec sheafdb --bind '*' '-::*' --protected-mode no "$@"
        fi
        exec sheafdb --bind '*' '-::*' --protected-mode no --admin-bind '*' "$@"
        ;;
    *.conf) exec sheafdb "$@" ;;
    *) exec "$@" ;;
esac
