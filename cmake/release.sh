#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the files of a release: the Debian package and the site. First checks the clone: no uncommitted changes, a
# version that CMakeLists.txt, CHANGELOG.md and a tag of the present commit name. CONTRIBUTING.md, Releases.
# usage: cmake/release.sh [--dry-run]      --dry-run: checks only, and prints the builds
set -eu

cd "$(dirname -- "$(readlink -f -- "$0")")/.."
faults=0
say() { printf 'release: %s\n' "$*"; }
fault() {
  faults=$((faults + 1))
  printf 'release: %s\n' "$*" >&2
}

dry_run=
case "$#:${1-}" in
  0:) ;;
  1:--dry-run) dry_run=1 ;;
  *)
    echo 'usage: cmake/release.sh [--dry-run]' >&2
    exit 2
    ;;
esac

version=$(sed -n 's/^project(rnicsim VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
case $version in
  *.*.*) ;;
  *)
    fault "CMakeLists.txt: no version of three numbers in project(rnicsim VERSION ...)"
    exit 1
    ;;
esac

changes=$(git status --porcelain)
[ -z "$changes" ] || fault "changes that are not committed:
$changes"

# The newest heading: ## [1.2.3] - 2026-11-30
heading=$(sed -n '/^## /{p;q;}' CHANGELOG.md)
case $heading in
  "## [$version] - "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) ;;
  "## [$version] - "*) fault "CHANGELOG.md: '$heading' has no date: ## [$version] - $(date +%Y-%m-%d)" ;;
  *) fault "CHANGELOG.md: the newest heading is '$heading', but CMakeLists.txt has the version $version" ;;
esac

# The build takes the version of the package from the tag (cmake/version.cmake).
tagged=$(git rev-parse --quiet --verify "refs/tags/v$version^{commit}" || true)
if [ -z "$tagged" ]; then
  fault "there is no tag v$version: git tag -a v$version"
elif [ "$tagged" != "$(git rev-parse HEAD)" ]; then
  fault "the tag v$version names another commit: a released version never changes"
fi

if [ "$faults" != 0 ]; then
  say "$version is not released: $faults to mend" >&2
  exit 1
fi
if [ -n "$dry_run" ]; then
  say "$version is ready; without --dry-run:"
  say "  ./rnicsim package"
  say "  cmake --build build/release --target site"
  exit 0
fi

./rnicsim package
package=$(find build/release -maxdepth 1 -name "rnicsim_${version}_*.deb")
if [ -z "$package" ]; then
  fault "./rnicsim package made no build/release/rnicsim_${version}_*.deb"
  exit 1
fi
cmake --build build/release --target site
say "$version:"
say "  package  $PWD/$package"
say "  site     $PWD/build/release/site"
