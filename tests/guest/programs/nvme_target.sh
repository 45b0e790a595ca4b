#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A disk in memory, exported by NVMe over RDMA.
# usage: nvme_target.sh ADDRESS MIB
set -e
modprobe brd rd_nr=1 rd_size="$(($2 * 1024))"
modprobe nvmet-rdma
cd /sys/kernel/config/nvmet
mkdir subsystems/disk ports/1
echo 1 >subsystems/disk/attr_allow_any_host
mkdir subsystems/disk/namespaces/1
echo /dev/ram0 >subsystems/disk/namespaces/1/device_path
echo 1 >subsystems/disk/namespaces/1/enable
echo rdma >ports/1/addr_trtype
echo ipv4 >ports/1/addr_adrfam
echo "$1" >ports/1/addr_traddr
echo 4420 >ports/1/addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/disk ports/1/subsystems/disk
