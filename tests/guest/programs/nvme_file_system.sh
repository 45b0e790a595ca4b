#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file system on a disk of nvme_target.sh: created, written, unmounted, read back.
# usage: nvme_file_system.sh ADDRESS MIB
set -e
modprobe -a nvme-rdma ext4
nvme connect -t rdma -n disk -a "$1" -s 4420 -i 1
tries=0
while [ ! -e /dev/nvme0n1 ] && [ "$tries" -lt 100 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
mkdir -p /mnt
mkfs.ext4 -q /dev/nvme0n1
mount /dev/nvme0n1 /mnt
dd if=/dev/urandom of=/mnt/file bs=1M count="$2" 2>/dev/null
written=$(md5sum </mnt/file)
umount /mnt
echo 3 >/proc/sys/vm/drop_caches
mount /dev/nvme0n1 /mnt
read_back=$(md5sum </mnt/file)
umount /mnt
nvme disconnect -n disk
[ "$written" = "$read_back" ]
echo "read back: $2 MiB"
