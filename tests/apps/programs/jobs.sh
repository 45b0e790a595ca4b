#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pipes, jobs in the background, and signals between them.
for i in 3 1 2; do
  (sleep 0.0$i; echo job $i) &
done
wait
seq 1 2000 | sort -r | awk '{ sum = (sum * 7 + $1) % 1000003 } END { print sum }'
(for i in 1 2 3; do echo $i; sleep 0.001; done) | while read -r line; do echo got "$line"; done
sleep 5 &
kill $!
wait $!
echo status $?
trap 'echo trapped' USR1
(sleep 0.002; kill -USR1 $$) &
sleep 0.01
wait
timeout 0.01 sleep 1
echo timeout $?
mkfifo /tmp/queue
(sleep 0.003; echo through the queue > /tmp/queue) &
cat /tmp/queue
yes | head -n 1000 | wc -l
date +%s%N
