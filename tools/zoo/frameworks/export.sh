#!/bin/sh
# Exports the models of other frameworks and libraries into the zoo, each in an environment of its own: export.sh keras|jax|paddle|torch [flags].
# Flags are those of the exporter, for example --only 'kerashub-*'. ZOO_BUILD names the folder of the packages; it is build/ if that is not set.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
framework=$1
shift
venv=${ZOO_BUILD:-$here/../../../build}/venv-$framework
if ! cmp -s "$here/requirements-$framework.txt" "$venv/installed.txt"; then
    python3 -m venv "$venv"
    # KerasHub wants tensorflow-text, which its models do not need.
    grep -v '^keras-hub' "$here/requirements-$framework.txt" > "$venv/wanted.txt"
    "$venv/bin/pip" install --quiet -r "$venv/wanted.txt"
    grep '^keras-hub' "$here/requirements-$framework.txt" | xargs -r "$venv/bin/pip" install --quiet --no-deps
    cp "$here/requirements-$framework.txt" "$venv/installed.txt"
fi
exec "$venv/bin/python" "$here/export_$framework.py" "$@"
