#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The launcher in an imitated tree and on an imitated machine: installed packages, builds, and passed arguments.
# usage: launcher_test.sh LAUNCHER [PROGRAM]      PROGRAM: bin/rnicsim-run; its commands must be the launcher's
set -u

launcher=$(readlink -f -- "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fakes=$folder/fakes
tree="$folder/a tree"
calls=$folder/calls
failures=0

mkdir -p "$fakes" "$folder/tools" "$tree/cmake" "$tree/model" "$tree/verbs" "$tree/sim" "$tree/rtl" "$tree/tests" \
  "$tree/traces/golden"
cp "$launcher" "$tree/rnicsim"
touch "$tree/CMakeLists.txt" "$tree/CMakePresets.json" "$tree/sim/main.cpp"
cat >"$tree/cmake/packages" <<'END'
# a comment
[build]
g++      compiler
cmake    configures
[programs]
perftest programs
[package]
packer   packs
[guest]
qemu     machines
[test]
tshark   looks at packets
END
for tool in sh dash env date find sed tail head grep rm mv cp mkdir cat dirname readlink nproc flock sleep touch \
  chmod; do
  ln -s "$(command -v $tool)" "$folder/tools/$tool"
done

# fake NAME: makes a command of the script on standard input; the command first records its call.
fake() {
  { printf '#!/bin/sh\necho "%s $*" >>"%s"\n' "$1" "$calls" && cat; } >"$fakes/$1"
  chmod +x "$fakes/$1"
}
fake id <<'END'
echo "${FAKE_UID-0}"
END
fake dpkg-query <<'END'
for package; do
  case " $FAKE_INSTALLED " in *" $package "*) echo "$package installed" ;; esac
done
END
fake apt-get <<'END'
echo "apt's words" && case " $* " in *" install "*) exit "${FAKE_APT-0}" ;; esac
END
fake cmake <<'END'
mkdir -p build/release build/asan && touch build/release/build.ninja build/asan/build.ninja
END
fake ninja <<'END'
sleep "${FAKE_SECONDS-0}"
echo "[1/2] a line of progress"
case " $* " in *" deb "*) echo 'CPack: - package: /a place/rnicsim_1_amd64.deb generated.' ;; esac
[ "${FAKE_NINJA-0}" = 0 ] || { echo "FAILED: main.o"; echo "main.cpp:1: ${FAKE_ERROR-error}"; exit "$FAKE_NINJA"; }
mkdir -p "$2/bin"
program=$2/bin/rnicsim
case " $* " in *' rnicsim_run '*) program=$program-run ;; esac
printf '#!/bin/sh\nprintf "[%%s]" "${0##*/}" "$@"\nexit 42\n' >"$program"
chmod +x "$program"
END
fake getconf <<'END'
case $1 in _PHYS_PAGES) echo "${FAKE_PAGES-99999999}" ;; PAGESIZE) echo 4096 ;; esac
END
fake ctest <<'END'
echo "100% tests passed"; exit 8
END

# try STATUS COMMAND...: runs COMMAND on the imitated machine; output in $folder/out and err, called fakes in $calls.
try() {
  expected=$1
  shift
  : >"$calls"
  what="$*"
  PATH=$fakes:$folder/tools "$@" >"$folder/out" 2>"$folder/err"
  status=$?
  [ "$status" = "$expected" ] || fail "exit status $status, expected $expected"
}
fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s: %s\n' "$what" "$1"
  sed 's/^/    out: /' "$folder/out"
  sed 's/^/    err: /' "$folder/err"
  sed 's/^/    call: /' "$calls"
}
# has FILE TEXT, lacks FILE TEXT
has() { grep -qF -e "$2" "$folder/$1" || fail "no '$2' in $1"; }
lacks() { ! grep -qF -e "$2" "$folder/$1" || fail "'$2' in $1"; }

export FAKE_INSTALLED=cmake

try 0 "$tree/rnicsim" help
has out 'usage:'
try 2 "$tree/rnicsim"
has err 'usage:'
lacks calls ninja
# Help of a command must not start a build.
for own in test bless package hooks; do
  for asked in --help -h; do
    try 0 "$tree/rnicsim" "$own" "$asked"
    has out "$own  "
    [ ! -s "$calls" ] || fail 'tools were called'
  done
done

# Without root and sudo: the launcher prints the command to type.
export FAKE_UID=1000
try 1 "$tree/rnicsim" run
has err 'apt-get install --no-install-recommends g++ perftest'
lacks calls apt-get

# With sudo, and an apt-get that fails: the launcher passes on its status and its messages.
fake sudo <<'END'
exec "$@"
END
export FAKE_APT=100
try 100 "$tree/rnicsim" run
has calls 'sudo env DEBIAN_FRONTEND=noninteractive apt-get'
has err "apt's words"
lacks calls ninja
unset FAKE_APT FAKE_UID

# Completion builds nothing.
try 0 "$tree/rnicsim" complete te
has out test
lacks out bless
lacks calls ninja

# First use as root: installs the packages of `run` and no others, then builds, then starts the program.
try 42 "$tree/rnicsim" run -- 'two words' ''
has calls 'apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends g++ perftest'
has calls 'cmake --fresh --preset release'
has calls 'host_libraries rnicsim_run'
lacks calls sim/all
lacks calls sudo
lacks calls tshark
has out '[rnicsim-run][run][--][two words][]'
lacks out 'progress'
commands='run serve shell env top describe diff'
export FAKE_INSTALLED='cmake qemu'
for command in $commands --version; do
  try 42 "$tree/rnicsim" "$command"
  has out "[rnicsim-run][$command]"
  lacks calls ninja
done
if [ $# = 2 ]; then
  what="the commands of $2"
  "$2" --help >"$folder/out" 2>"$folder/err" || fail 'no help'
  listed=$(sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p' "$folder/out" | tr '\n' ' ')
  [ "$listed" = "$commands " ] || fail "'$listed' instead of '$commands '"
fi

export FAKE_INSTALLED=cmake

# The small program completes arguments; the launcher completes command names, with all commands of the whole program.
try 42 "$tree/rnicsim" complete run --ni
has out '[rnicsim-run][complete][run][--ni]'
try 0 "$tree/rnicsim" complete re
[ "$(tr '\n' ' ' <"$folder/out")" = 'report replay ' ] || fail 'not report and replay'
lacks calls ninja

# Any other command: builds the whole program, which has all commands.
try 42 "$tree/rnicsim" bench write-4k
has calls 'verbs/all sim/all'
lacks calls rnicsim_run
has out '[rnicsim][bench][write-4k]'
try 42 "$tree/rnicsim" run -- prog
has out '[rnicsim][run][--][prog]'
lacks calls ninja

# Packages for guests are installed, also when no build is needed.
try 42 "$tree/rnicsim" vm --on g0 date
has calls 'install -y --no-install-recommends qemu'
lacks calls ninja
has out '[rnicsim][vm]'

# Nothing is stale: no tool runs, from any folder, through absolute and relative links.
export FAKE_INSTALLED='g++ cmake perftest'
ln -s "$tree/rnicsim" "$folder/link"
ln -s link "$folder/link2"
cd / || exit 1
try 42 "$folder/link2" --version
has out '[--version]'
[ ! -s "$calls" ] || fail 'tools were called'
[ ! -s "$folder/err" ] || fail 'it said something'

# A changed source: built without configuring. A failing build shows the error and stays stale.
sleep 0.02
touch "$tree/sim/main.cpp"
export FAKE_NINJA=3
try 3 "$tree/rnicsim" run
has err 'main.cpp:1: error'
has err 'build/release/build.log'
export FAKE_ERROR='fatal error: Killed signal terminated program cc1plus'
try 3 "$tree/rnicsim" run
has err 'RNICSIM_JOBS=1'
lacks err main.cpp
unset FAKE_NINJA FAKE_ERROR
# 2 GiB of memory: a single compiler at a time, unless RNICSIM_JOBS asks for more.
touch "$tree/sim/main.cpp"
export FAKE_PAGES=524288
try 42 "$tree/rnicsim" run
has calls '-j 1 '
[ "$(nproc)" = 1 ] || has err '1 parallel jobs, because the memory is 2048 MiB'
sleep 0.02
touch "$tree/sim/main.cpp"
export RNICSIM_JOBS=7
try 42 "$tree/rnicsim" run
has calls '-j 7 '
unset RNICSIM_JOBS
sleep 0.02
touch "$tree/sim/main.cpp"
export FAKE_PAGES=65536
try 42 "$tree/rnicsim" run
has calls '-j 1 '
unset FAKE_PAGES
sleep 0.02
touch "$tree/sim/main.cpp"
try 42 "$tree/rnicsim" run
has calls 'ninja'
lacks calls 'cmake --'
lacks calls apt-get

# The RTL with assertions is built on the first request, and in all later builds.
try 42 "$tree/rnicsim" run --engine lockstep -- prog
has calls 'verbs/all sim/all rtl_checked'
mkdir -p "$tree/build/release/lib/rnicsim"
touch "$tree/build/release/lib/rnicsim/librnicsim_rtl_checked.so"
try 42 "$tree/rnicsim" run --engine lockstep -- prog
lacks calls ninja
touch "$tree/sim/other.cpp"
try 42 "$tree/rnicsim" run
has calls 'verbs/all sim/all rtl_checked'
rm -r "$tree/build/release/lib"

# A commit changes the version.
mkdir -p "$tree/.git/logs"
touch "$tree/.git/logs/HEAD"
try 42 "$tree/rnicsim" --version
has calls ninja
try 42 "$tree/rnicsim" --version
lacks calls ninja

touch "$tree/sim/other.cpp"
try 42 "$tree/rnicsim" complete run --ni
has out '[complete][run][--ni]'
lacks calls ninja
try 42 "$tree/rnicsim" run
has calls ninja

# The golden traces need a test program. The launcher builds it for their check, and again after a change of a test, but
# not for `run`; with any spelling of the folder's path.
programs="[--path][$tree/build/release/tests]"
try 42 "$tree/rnicsim" check "$tree/traces/golden" rc_send
has calls 'verbs/all sim/all golden_behaviour'
has out "[check][$tree/traces/golden][rc_send]$programs"
cd "$tree/sim" || exit 1
try 42 ../rnicsim check -j 2 ../traces/golden/
has out "[check][-j][2][../traces/golden/]$programs"
lacks calls ninja
sleep 0.02
touch "$tree/tests/a_test.cpp"
try 42 "$tree/rnicsim" run
lacks calls ninja
try 42 "$tree/rnicsim" check ../traces/golden
has calls 'golden_behaviour'
touch "$tree/sim/other.cpp"
try 42 "$tree/rnicsim" run
lacks calls 'golden_behaviour'
try 42 "$tree/rnicsim" check ../traces/golden
has calls 'golden_behaviour'
# The launcher builds no test programs for another folder, or with --path.
try 42 "$tree/rnicsim" check ../traces
has out '[check][../traces]'
lacks out '[--path]'
try 42 "$tree/rnicsim" check ../traces/golden --path elsewhere
lacks out "$tree/build"
try 42 "$tree/rnicsim" check ../traces/golden --path=elsewhere
lacks out "$tree/build"
lacks calls ninja
cd / || exit 1

# `bless` always builds first, with all that `run` needs: the tree counts as built.
try 42 "$tree/rnicsim" bless rc_send 'two words'
has calls 'verbs/all sim/all golden_behaviour'
has out "[check][--update][--path][$tree/build/release/tests][$tree/traces/golden][rc_send][two words]"

# The package: additional packages, and the path of the result.
try 0 "$tree/rnicsim" package
has calls '--no-install-recommends packer'
has calls 'cmake --fresh --preset release'
has calls 'verbs/all sim/all installed deb'
has out '/a place/rnicsim_1_amd64.deb'
lacks out CPack

# A removed source; an extended list of packages.
rm "$tree/sim/main.cpp"
try 42 "$tree/rnicsim" run
has calls ninja
echo 'extra why' >>"$tree/cmake/packages"
try 42 "$tree/rnicsim" run
has calls dpkg-query

# Two launchers at once: one builds, the other waits.
touch "$tree/sim/other.cpp"
: >"$calls"
what='two at once'
export FAKE_SECONDS=0.5
PATH=$fakes:$folder/tools "$tree/rnicsim" run >/dev/null 2>&1 &
PATH=$fakes:$folder/tools "$tree/rnicsim" run >"$folder/out" 2>"$folder/err"
wait
unset FAKE_SECONDS
[ "$(grep -c '^ninja' "$calls")" = 1 ] || fail 'not built exactly once'

# A moved folder is configured again.
mv "$tree" "$folder/moved"
tree=$folder/moved
try 42 "$tree/rnicsim" run
has calls 'cmake --fresh --preset release'

# Tests: additional packages, labels, ctest's output and status.
try 8 "$tree/rnicsim" test
has calls 'install -y --no-install-recommends packer qemu tshark extra'
has calls '-LE ^full$'
has calls '--output-junit tests.xml'
has out '100% tests passed'
has err 'built in 0 min'
try 8 "$tree/rnicsim" test quick -R pattern
has calls '-L ^quick$ -R pattern'
try 8 "$tree/rnicsim" test unit
has calls '-L ^unit$ -LE ^full$'
try 8 "$tree/rnicsim" test full -V
lacks calls '^full$'
try 8 "$tree/rnicsim" test asan
has calls 'cmake --fresh --preset asan'
has calls 'build/asan'
has calls '-L ^quick$ -L ^in-process$'
try 2 "$tree/rnicsim" test nonsense
has err "'nonsense'"
export RNICSIM_JOBS=3
try 8 "$tree/rnicsim" test quick
has calls '-j 3'
export RNICSIM_JOBS=many
try 2 "$tree/rnicsim" test quick
has err RNICSIM_JOBS
unset RNICSIM_JOBS

[ "$failures" = 0 ] && echo 'all as it should be'
exit "$((failures != 0))"
