#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs all cases; JUnit results are in report.xml. The exit status is 0 only if every case passed.
# usage: gate.sh [option of `rnicsim check`...]
set -eu
here=$(dirname "$0")
exec rnicsim check "$here/cases" --junit report.xml "$@"
