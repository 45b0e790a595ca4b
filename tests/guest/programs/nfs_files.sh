#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files on the server of nfs_server.sh: written, unmounted, read back.
# usage: nfs_files.sh ADDRESS MIB
set -e
modprobe -a rpcrdma nfsv4
mount.nfs4 "$1:/" /mnt -o rdma,port=20049,vers=4.2
grep -o 'proto=rdma' /proc/mounts
dd if=/dev/urandom of=/mnt/file bs=1M count="$2" 2>/dev/null
mkdir /mnt/folder
for number in 1 2 3 4 5 6 7 8; do echo "$number" >"/mnt/folder/$number"; done
mv /mnt/folder/8 /mnt/folder/eight
written=$(md5sum </mnt/file)
umount /mnt
mount.nfs4 "$1:/" /mnt -o rdma,port=20049,vers=4.2
read_back=$(md5sum </mnt/file)
cat /mnt/folder/[1-7] /mnt/folder/eight | tr -d '\n'
echo
rm -r /mnt/folder
umount /mnt
[ "$written" = "$read_back" ]
echo "read back: $2 MiB"
