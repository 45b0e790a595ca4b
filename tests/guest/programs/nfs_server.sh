#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file system in memory, exported by NFS version 4.2 over RDMA. The server has no other port.
# usage: nfs_server.sh MIB
set -e
modprobe brd rd_nr=1 rd_size="$(($1 * 1024))"
modprobe -a ext4 nfsd rpcrdma
mkfs.ext4 -q /dev/ram0
mkdir -p /export /var/lib/nfs/v4recovery
mount /dev/ram0 /export
mount -t nfsd nfsd /proc/fs/nfsd
touch /etc/exports /var/lib/nfs/etab /var/lib/nfs/rmtab
# fsid=0: the root of the server's name space.
exportfs -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 '*:/export'
rpc.mountd --no-nfs-version 3
echo -3 >/proc/fs/nfsd/versions
echo 'rdma 20049' >/proc/fs/nfsd/portlist
echo 4 >/proc/fs/nfsd/threads
# No client of an earlier server claims its locks: otherwise the first write waits for 90 s.
echo Y >/proc/fs/nfsd/v4_end_grace
cat /proc/fs/nfsd/portlist
