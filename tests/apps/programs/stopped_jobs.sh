#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs that are stopped and continued. dash cannot send a signal to a job by its number: it gets the PID.
(for i in 1 2 3 4 5 6; do sleep 0.01; echo job $i; done) &
job=${BASH_VERSION:+%1}
job=${job:-$!}
sleep 0.025
kill -STOP "$job"
echo stopped
sleep 0.1
echo let go on
kill -CONT "$job"
wait
sleep 5 &
kill -TSTP $!
kill -TERM $!
sleep 0.01
kill -CONT $!
wait $!
echo status $?
date +%s%N
[ -n "$BASH_VERSION" ] || exit 0
set -m
(sleep 0.01; echo in a group; sleep 0.01) &
sleep 0.005
kill -STOP %%
sleep 0.05
jobs
kill -CONT %%
wait
echo end
date +%s%N
