#!/bin/sh
# Exports the whole zoo: first with the current transformers, then with the older one, which lies in
# a directory of its own so that torch is installed only once. What is up to date is not exported again.
# Arguments are passed to export.py, for example: tools/zoo/export.sh --only 'llama-*' --force
# ZOO_BUILD names the folder of the packages; it is build/ if that is not set.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=${ZOO_BUILD:-$here/../../build}
venv=$build/venv-zoo
old=$build/old-packages
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"

if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
if ! cmp -s "$here/requirements-4.44.2.txt" "$old/installed.txt"; then
    rm -rf "$old"
    "$venv/bin/pip" install --quiet --no-deps --target "$old" -r "$here/requirements-4.44.2.txt"
    cp "$here/requirements-4.44.2.txt" "$old/installed.txt"
fi

"$venv/bin/python" "$here/export.py" "$@"
PYTHONPATH=$old "$venv/bin/python" "$here/export.py" "$@"
"$venv/bin/python" "$here/check.py"
"$venv/bin/python" "$here/table.py"
