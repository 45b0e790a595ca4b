#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The hook for commit messages: accepted and refused messages, alone and called by git.
# usage: commit_message_test.sh ROOT
set -u

root=$(readlink -f -- "$1")
hook=$root/.ci/hooks/commit-msg
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n' "$*"
}
# accepts MESSAGE: MESSAGE is a format of printf.
accepts() {
  # shellcheck disable=SC2059
  printf "$1" >"$folder/message"
  "$hook" "$folder/message" 2>"$folder/err" || fail "refused: $1: $(cat "$folder/err")"
}
# refuses MESSAGE REASON
refuses() {
  # shellcheck disable=SC2059
  printf "$1" >"$folder/message"
  "$hook" "$folder/message" 2>"$folder/err" && fail "accepted: $1"
  grep -qF -e "$2" "$folder/err" || fail "no '$2' for: $1: $(cat "$folder/err")"
}

accepts 'nic: count doorbells\n\nThe reason.\n'
accepts 'verbs, sim: add memory windows to the Linux driver\n\nThe reason.\n\nIn two paragraphs.\n'
accepts 'model/nic: pass the key\n\nThe reason.\n'
accepts 'rtl: embed the table\n\nThe reason.\n'
accepts 'docs: bring the table up to date\n\nThe reason.\n'
accepts 'abi: focus on layouts\n\nThe reason.\n# A comment of git.\n'
accepts "Merge branch 'topic'\n"
accepts 'Revert "nic: count doorbells"\n\nThis reverts commit 0.\n'
accepts 'fixup! nic: count doorbells\n'
# 72 columns; a character of two bytes is one column.
accepts "nic: add $(printf 'é%.0s' $(seq 63))\n\nThe reason.\n"
refuses "nic: add $(printf 'x%.0s' $(seq 64))\n\nThe reason.\n" '73 columns'
refuses 'count doorbells\n\nThe reason.\n' 'needs a room'
refuses 'NIC: count doorbells\n\nThe reason.\n' 'needs a room'
refuses 'nic:count doorbells\n\nThe reason.\n' 'needs a room'
refuses '' 'needs a room'
refuses 'nic: counted doorbells\n\nThe reason.\n' 'no imperative'
refuses 'nic: counting doorbells\n\nThe reason.\n' 'no imperative'
refuses 'nic: counts doorbells\n\nThe reason.\n' 'no imperative'
refuses 'nic: a counter of doorbells\n\nThe reason.\n' 'no verb'
refuses 'nic: who waits is told\n\nThe reason.\n' 'no verb'
refuses 'nic: count doorbells.\n\nThe reason.\n' 'full stop'
refuses 'nic: count doorbells\nThe reason.\n' 'second line'
refuses 'nic: count doorbells\n' 'body'
refuses 'nic: count doorbells\n\n \n' 'body'
refuses 'nic: count doorbells\n\nSigned-off-by: A <a@b>\n' 'body'
refuses 'nic: count doorbells\n\n# A comment of git.\n' 'body'
refuses 'nic: count doorbells\n# ------------------------ >8 ------------------------\n\nA diff.\n' 'body'

# `./rnicsim hooks` in a clone, twice; then git calls the hook, also after a move of the clone.
export HOME="$folder" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
  GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
clone="$folder/a clone"
mkdir -p "$clone/.ci/hooks"
cp "$root/rnicsim" "$clone"
cp "$hook" "$clone/.ci/hooks"
"$clone/rnicsim" hooks 2>"$folder/err" && fail 'hooks were installed without git'
grep -q 'not a git clone' "$folder/err" || fail "no clear message without git: $(cat "$folder/err")"
git init -q "$clone"
for _ in 1 2; do
  "$clone/rnicsim" hooks >"$folder/out" 2>&1 || fail "hooks: $(cat "$folder/out")"
done
mv "$clone" "$folder/moved"
clone=$folder/moved
git -C "$clone" commit -q --allow-empty -m 'Added a thing' 2>"$folder/err" && fail 'git accepted a wrong message'
grep -q 'needs a room' "$folder/err" || fail "git did not call the hook: $(cat "$folder/err")"
git -C "$clone" commit -q --allow-empty -m 'nic: add a thing' -m 'The reason.' || fail 'git refused a right message'
# A hook of the user is never replaced.
rm "$clone/.git/hooks/commit-msg"
echo 'exit 0' >"$clone/.git/hooks/commit-msg"
"$clone/rnicsim" hooks 2>"$folder/err" && fail 'a hook of the user was replaced'
grep -q 'exists' "$folder/err" || fail "no clear message: $(cat "$folder/err")"
[ "$(cat "$clone/.git/hooks/commit-msg")" = 'exit 0' ] || fail 'a hook of the user was changed'

[ "$failures" = 0 ] && echo 'all as it should be'
exit "$((failures != 0))"
