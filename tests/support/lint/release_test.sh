#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The release script in an imitated clone, with an imitated launcher and cmake.
# usage: release_test.sh ROOT
set -u

script=$(readlink -f -- "$1")/cmake/release.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
clone="$folder/a clone"
failures=0
export HOME="$folder" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
  GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# try STATUS TEXT ARGUMENT...: the script's exit status, and a text of its output.
try() {
  expected=$1
  text=$2
  shift 2
  PATH=$folder/fakes:$PATH "$clone/cmake/release.sh" "$@" >"$folder/out" 2>&1
  status=$?
  if [ "$status" != "$expected" ] || ! grep -qF -e "$text" "$folder/out"; then
    failures=$((failures + 1))
    printf 'FAILED: release.sh %s: status %s, expected %s and "%s"\n' "$*" "$status" "$expected" "$text"
    sed 's/^/    /' "$folder/out"
  fi
}
commit() {
  git -C "$clone" add -A
  git -C "$clone" commit -q --allow-empty -m "$1"
}

mkdir -p "$clone/cmake" "$folder/fakes"
cp "$script" "$clone/cmake"
printf '/build/\n' >"$clone/.gitignore"
printf 'project(rnicsim VERSION 0.2.0 LANGUAGES C)\n' >"$clone/CMakeLists.txt"
printf '# Changelog\n\n## [0.2.0] - unreleased\n\n## [0.1.0] - 2026-01-02\n' >"$clone/CHANGELOG.md"
cat >"$clone/rnicsim" <<'END'
#!/bin/sh
mkdir -p build/release
[ -n "${FAKE_NOTHING-}" ] || touch build/release/rnicsim_0.2.0_amd64.deb
END
cat >"$folder/fakes/cmake" <<'END'
#!/bin/sh
echo "cmake $*"
exit "${FAKE_CMAKE-0}"
END
chmod +x "$clone/rnicsim" "$folder/fakes/cmake"
git init -q "$clone"
commit 'first'

try 2 'usage' --help
try 1 'has no date' --dry-run
try 1 'no tag v0.2.0' --dry-run
try 1 '2 to mend' --dry-run
sed -i 's/unreleased/2026-02-03/' "$clone/CHANGELOG.md"
try 1 'not committed' --dry-run
commit 'dated'
git -C "$clone" tag -a v0.2.0 -m v0.2.0
try 0 '0.2.0 is ready' --dry-run
[ ! -e "$clone/build" ] || { failures=$((failures + 1)) && echo 'FAILED: --dry-run built'; }
FAKE_NOTHING=1 try 1 'made no build/release/rnicsim_0.2.0_'
FAKE_CMAKE=3 try 3 'cmake --build build/release --target site'
try 0 "$clone/build/release/rnicsim_0.2.0_amd64.deb"
try 0 "$clone/build/release/site"
touch "$clone/new"
try 1 'not committed'
commit 'later'
try 1 'names another commit' --dry-run
sed -i 's/0\.2\.0/0.3.0/' "$clone/CMakeLists.txt"
try 1 "the newest heading is '## [0.2.0] - 2026-02-03'" --dry-run
printf 'project(rnicsim)\n' >"$clone/CMakeLists.txt"
try 1 'no version' --dry-run

[ "$failures" = 0 ] && echo 'all as it should be'
exit "$((failures != 0))"
