#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Linux kernel driver builds against Debian's headers without warnings under W=1, and without findings of sparse and
# checkpatch where these are installed. Exit status 77: the kernel headers are missing.
# usage: driver_builds_test.sh ROOT
set -eu

root=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

headers=
for candidate in /usr/src/linux-headers-6.1.*-amd64; do
  if [ -e "$candidate/Makefile" ]; then headers=$candidate; fi
done
if [ -z "$headers" ]; then
  echo "skipped: no headers of Debian's kernel (package linux-headers-amd64)"
  exit 77
fi

# Built in a copy, because kbuild writes next to the sources.
cp -r "$root/verbs/linux" "$folder/linux"
cp -r "$root/model/abi/c" "$folder/abi"
log=$folder/log

build() {
  if ! make -C "$headers" M="$folder/linux/kernel" RNIC_ABI="$folder/abi" KCFLAGS=-Werror "$@" >"$log" 2>&1; then
    cat "$log"
    echo "failed: make $*"
    exit 1
  fi
}

build W=1 modules
test -s "$folder/linux/kernel/rnic.ko"
echo "built against $headers"

if command -v sparse >/dev/null; then
  # Findings of sparse in the kernel's own headers are ignored.
  # With the flags of the first build, which would otherwise be repeated.
  build W=1 C=2 CF=-D__CHECK_ENDIAN__ modules
  if grep "$folder/linux/kernel/[a-z_]*\.[ch]:[0-9:]* \(warning\|error\)" "$log"; then
    echo "failed: sparse"
    exit 1
  fi
  echo "clean under sparse"
else
  echo "not checked by sparse: it is not installed"
fi

checkpatch=
for candidate in "$headers"/scripts/checkpatch.pl /usr/src/linux-headers-6.1.*-common/scripts/checkpatch.pl \
  /usr/lib/linux-kbuild-6.1/scripts/checkpatch.pl; do
  if [ -e "$candidate" ]; then checkpatch=$candidate; fi
done
if [ -n "$checkpatch" ]; then
  # The project's line length; types with the names of the layouts.
  perl "$checkpatch" --no-tree --terse --no-summary --max-line-length=120 --strict -f "$folder"/linux/kernel/*.[ch] ||
    { echo "failed: checkpatch" && exit 1; }
  echo "clean under checkpatch"
else
  echo "not checked by checkpatch: Debian's headers have none"
fi
