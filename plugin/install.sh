#!/bin/sh
# Builds the plugin and installs it where ATC looks: opp/vendors/ascend_fuse of the CANN toolkit, or, with a folder as
# argument, that folder, which ASCEND_CUSTOM_OPP_PATH must name then. `install.sh --remove [folder]` removes it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
library=libascend_fuse_onnx_plugin.so
remove=no
if [ "${1:-}" = --remove ]; then
  remove=yes
  shift
fi

if [ -z "${ASCEND_HOME_PATH:-}" ]; then
  echo "install.sh: ASCEND_HOME_PATH is not set: source set_env.sh of the CANN toolkit first" >&2
  exit 1
fi
folder=${1:-}
vendors="$ASCEND_HOME_PATH/opp/vendors"
target=${folder:-$vendors/ascend_fuse}
list="$vendors/config.ini"

# The vendors of config.ini without ours, as "a,b".
other_vendors() {
  if [ -f "$list" ]; then
    sed -n 's/^load_priority=//p' "$list" | tr ',' '\n' | grep -v -x -e ascend_fuse -e '' | paste -s -d, - || true
  fi
}

write_vendors() {
  words=$(other_vendors)
  if [ "$1" = with ]; then words="ascend_fuse${words:+,$words}"; fi
  if [ -f "$list" ] && grep -q '^load_priority=' "$list"; then
    sed "s/^load_priority=.*/load_priority=$words/" "$list" > "$list.new"
    mv "$list.new" "$list"
  else
    echo "load_priority=$words" >> "$list"
  fi
}

if [ "$remove" = yes ]; then
  rm -f "$target/framework/onnx/$library"
  rmdir "$target/framework/onnx" "$target/framework" "$target" 2> /dev/null || true
  if [ -z "$folder" ] && [ -f "$list" ]; then write_vendors without; fi
  echo "removed $target/framework/onnx/$library"
  exit 0
fi

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cmake -S "$here" -B "$build" -DCANN="$ASCEND_HOME_PATH" > "$build/log" 2>&1 || { cat "$build/log" >&2; exit 1; }
cmake --build "$build" >> "$build/log" 2>&1 || { cat "$build/log" >&2; exit 1; }
mkdir -p "$target/framework/onnx"
cp "$build/$library" "$target/framework/onnx/"
if [ -z "$folder" ]; then write_vendors with; fi

sed -n 's/^#define ASCEND_FUSE_PLUGIN_VERSION /installed version /p' "$here/version.h"
echo "in $target/framework/onnx/$library"
if [ -n "$folder" ]; then
  echo "before atc is run:"
  echo "export ASCEND_CUSTOM_OPP_PATH=$(cd "$folder" && pwd)\${ASCEND_CUSTOM_OPP_PATH:+:\$ASCEND_CUSTOM_OPP_PATH}"
fi
