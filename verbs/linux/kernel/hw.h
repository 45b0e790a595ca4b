/* SPDX-License-Identifier: GPL-2.0 */
/* The device's layouts and registers, for the kernel (docs/device.md). */
#ifndef RNIC_HW_H
#define RNIC_HW_H

#include <linux/build_bug.h>
#include <linux/types.h>

/* In place of the layouts' own big_endian.h: sparse knows these types. */
#define RNICSIM_ABI_BIG_ENDIAN_H
#define RNICSIM_HOLDS(what) static_assert(what)
typedef __be16 rnicsim_be16;
typedef __be32 rnicsim_be32;
typedef __be64 rnicsim_be64;

#include "command.h"
#include "context.h"
#include "device.h"
#include "queue.h"

#define RNIC_COMMAND(name) RNICSIM_COMMAND_OPCODE_##name

/* The only port, and the only P_Key. */
#define RNIC_PORT 1
#define RNIC_PKEY 0xffff

/* The first minor version of the contract in which a GID may have a VLAN. */
#define RNIC_MINOR_WITH_VLANS 1

#endif /* RNIC_HW_H */
