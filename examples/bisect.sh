#!/bin/bash
# The rewrite that does harm: bisect.sh MODEL CHECK [FLAG OF OPTIMIZE]...
# CHECK is a command that is given the path of an optimized model and ends with 0 where that is good.
set -euo pipefail
model=$1 check=$2
shift 2
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

write() {  # write N FLAG...: the model with the first N rewrites
  ascend-fuse optimize "$model" -o "$folder/$1.onnx" --quiet --force --limit "$@"
}
good() { write "$@" && $check "$folder/$1.onnx" > "$folder/$1.txt" 2>&1; }

good 0 "$@" || { echo "the model is not good without any rewrite:"; cat "$folder/0.txt"; exit 1; }
nodes=$(ascend-fuse print "$model" --max-elements 0 | grep -c ' = ')  # there are no more rewrites
low=0 high=1  # good with `low` rewrites, not with `high`
while good $high "$@"; do
  [[ $high -lt $nodes ]] || { echo "all rewrites are good"; exit 0; }
  low=$high high=$((2 * high))
done
while [[ $((high - low)) -gt 1 ]]; do
  middle=$(((low + high) / 2))
  if good $middle "$@"; then low=$middle; else high=$middle; fi
done
echo "good with --limit $low, not with --limit $high; between them:"
ascend-fuse diff "$folder/$low.onnx" "$folder/$high.onnx"
