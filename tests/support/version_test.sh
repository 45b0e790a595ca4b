#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The version that the build takes from git, in repositories made for the test.
# usage: version_test.sh cmake/version.cmake
set -u

script=$(readlink -f -- "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sources=$folder/sources
output=$folder/version.cpp
failures=0

git() {
  env GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null git -C "$sources" \
    -c user.name=nobody -c user.email=nobody@localhost "$@" >/dev/null
}

# is WHEN VERSION-REGEX COMMIT-REGEX [SOURCES]
is() {
  cmake -D SOURCE_DIR="${4-$sources}" -D PROJECT_VERSION=0.1.0 -D OUTPUT="$output" -P "$script" || exit 1
  if ! grep -qE "kVersion\[\] = \"$2\"" "$output" || ! grep -qE "kCommit\[\] = \"$3\"" "$output"; then
    failures=$((failures + 1))
    printf 'FAILED: %s: expected %s, %s\n' "$1" "$2" "$3"
    cat "$output"
  fi
}
hash='[0-9a-f]{40}'

mkdir -p "$sources/inside"
is 'no repository' '0\.1\.0' unknown
git init -q
is 'no commit' '0\.1\.0' unknown
echo one >"$sources/file"
git add file
git commit -q -m one
is 'no tag' '0\.1\.0-1-g[0-9a-f]+' "$hash"
is 'a folder of another repository' '0\.1\.0' unknown "$sources/inside"
git tag v0.2.0
git tag picked
is 'a tag' '0\.2\.0' "$hash"
touch -d @0 "$output"
is 'the same again' '0\.2\.0' "$hash"
[ "$(stat -c %Y "$output")" = 0 ] || {
  failures=$((failures + 1))
  echo 'FAILED: written though nothing changed: the program would be linked again'
}
echo two >"$sources/file"
is 'a change' '0\.2\.0-dirty' "$hash, and changes that are not committed"
git commit -q -a -m two
is 'a commit more' '0\.2\.0-1-g[0-9a-f]+' "$hash"

[ "$failures" = 0 ] && echo 'all as it should be'
exit "$((failures != 0))"
