#!/bin/sh
# Nothing, options or a configuration file: the server with them. Anything else is run as it stands.
set -eu
case "${1:-}" in
    '' | -*)
        # A container is reached from outside; whoever publishes its ports decides from where. Options of the user come later and win.
        exec sheafdb --bind '*' '-::*' --protected-mode no --admin-bind '*' "$@"
        ;;
    *.conf) exec sheafdb "$@" ;;
    *) exec "$@" ;;
esac
