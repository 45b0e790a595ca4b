/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Made from model/abi/device.h by tests/support/device_layouts.py --write. What it means is docs/device.md. */
#ifndef RNICSIM_ABI_DEVICE_H
#define RNICSIM_ABI_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#define RNICSIM_ABI_MAJOR 2u  /* Version of the contract: a driver refuses another major version. */
#define RNICSIM_ABI_MINOR 1u
/* PCI identity (not assigned by the PCI-SIG: the device never sits on a real bus). */
#define RNICSIM_PCI_VENDOR_ID 0xd00du
#define RNICSIM_PCI_DEVICE_ID 0x0001u
#define RNICSIM_PCI_CLASS_CODE 0x020700u  /* network controller, InfiniBand */
#define RNICSIM_PCI_REVISION 1u

/* Configuration space: offsets of the capabilities and of the bits the model acts on. */
#define RNICSIM_CONFIG_COMMAND 0x04u  /* bit 1 memory space, bit 2 bus master */
#define RNICSIM_CONFIG_BAR0 0x10u  /* 64-bit, prefetchable */
#define RNICSIM_CONFIG_CAPABILITY_POINTER 0x34u
#define RNICSIM_CONFIG_PCIE_CAPABILITY 0x40u
#define RNICSIM_CONFIG_DEVICE_CONTROL 0x48u  /* bit 15: initiate function-level reset */
#define RNICSIM_CONFIG_MSIX_CAPABILITY 0x80u
#define RNICSIM_CONFIG_MSIX_CONTROL 0x82u  /* bit 15 enable, bit 14 mask all */
#define RNICSIM_CONFIG_POWER_CAPABILITY 0x90u
#define RNICSIM_CONFIG_POWER_CONTROL 0x94u  /* bits 1:0: 0 is D0, 3 is D3hot */
#define RNICSIM_CONFIG_ERROR_REPORTING 0x100u  /* the extended capabilities begin */
#define RNICSIM_CONFIG_SERIAL_NUMBER 0x150u  /* EUI-64 of the port's MAC address */
#define RNICSIM_CONFIG_SIZE 0x1000u
#define RNICSIM_CONFIG_COMMAND_MEMORY 0x2u
#define RNICSIM_CONFIG_COMMAND_BUS_MASTER 0x4u
#define RNICSIM_CONFIG_FUNCTION_LEVEL_RESET 0x8000u
#define RNICSIM_CONFIG_MSIX_ENABLE 0x8000u
#define RNICSIM_CONFIG_MSIX_MASK_ALL 0x4000u

#define RNICSIM_BAR_SIZE 0x800000u  /* BAR0. */
#define RNICSIM_REGISTER_PAGE 0x000000u
#define RNICSIM_MSIX_TABLE 0x010000u  /* 16 bytes for each vector, little-endian, PCI layout */
#define RNICSIM_MSIX_PBA 0x018000u  /* one bit for each vector, little-endian */
#define RNICSIM_UAR_BASE 0x100000u  /* UAR pages, 4 KiB each */
#define RNICSIM_UAR_PAGE_SIZE 4096u
#define RNICSIM_UAR_PAGES 1024u  /* page 0 belongs to the kernel's agent */
#define RNICSIM_MSIX_VECTORS 64u
#define RNICSIM_DEVICE_MEMORY_BASE 0x600000u  /* device memory, up to its size */
#define RNICSIM_MOST_DEVICE_MEMORY 0x200000u

/* The register page. Width in bits, RO read only. */
#define RNICSIM_REG_MAGIC 0x000u  /* 32 RO "RNIC" */
#define RNICSIM_REG_ABI_VERSION 0x004u  /* 32 RO major << 16 | minor */
#define RNICSIM_REG_FEATURES 0x008u  /* 64 RO Feature bits */
#define RNICSIM_REG_FIRMWARE_VERSION 0x010u  /* 64 RO major << 32 | minor << 16 | patch */
#define RNICSIM_REG_UAR_INFO 0x018u  /* 32 RO number of UAR pages */
#define RNICSIM_REG_BLUE_FLAME_SIZE 0x01cu  /* 32 RO bytes a BlueFlame buffer */
#define RNICSIM_REG_COMMAND_LOG_ENTRIES 0x020u  /* 32 RO log2 of the number of entries of the command queue */
#define RNICSIM_REG_STATUS 0x024u  /* 32 RO DeviceStatus */
#define RNICSIM_REG_HEALTH_SYNDROME 0x028u  /* 32 RO reason of kFatal: HealthSyndrome */
#define RNICSIM_REG_CORE_CLOCK_KHZ 0x02cu  /* 32 RO frequency of kClock */
#define RNICSIM_REG_HEALTH_COUNTER 0x030u  /* 32 RO heartbeat: incremented each millisecond, unless kFatal */
#define RNICSIM_REG_COMMAND_QUEUE_BASE 0x080u  /* 64 RW bus address of the command queue, 4 KiB aligned */
#define RNICSIM_REG_COMMAND_DOORBELL 0x088u  /* 32 WO one bit for each entry to execute */
#define RNICSIM_REG_CLOCK 0x0a0u  /* 64 RO free-running clock, kCoreClockKhz */

#define RNICSIM_MAGIC_VALUE 0x524e4943u

enum rnicsim_device_status {
  RNICSIM_DEVICE_STATUS_INITIALIZING = 0,
  RNICSIM_DEVICE_STATUS_READY = 1,
  RNICSIM_DEVICE_STATUS_FATAL = 2,
};

enum rnicsim_health_syndrome {
  RNICSIM_HEALTH_SYNDROME_NONE = 0,
  RNICSIM_HEALTH_SYNDROME_INJECTED = 1,  /* a fault rule of the simulation */
  RNICSIM_HEALTH_SYNDROME_ICM_ACCESS = 2,  /* host memory refused the write of a context that is not a queue pair's */
  RNICSIM_HEALTH_SYNDROME_EVENT_QUEUE_ACCESS = 3,  /* host memory refused an event queue entry */
  RNICSIM_HEALTH_SYNDROME_COMMAND_QUEUE_ACCESS = 4,  /* host memory refused the completion of a command */
};

#define RNICSIM_FEATURE_BLUE_FLAME 0x1ull
#define RNICSIM_FEATURE_RC 0x2ull
#define RNICSIM_FEATURE_INVALIDATE 0x4ull  /* send_with_inv and local_inv, and their packets */
#define RNICSIM_FEATURE_UC 0x8ull
#define RNICSIM_FEATURE_UD 0x10ull
#define RNICSIM_FEATURE_SRQ 0x20ull
#define RNICSIM_FEATURE_MULTICAST 0x40ull
#define RNICSIM_FEATURE_WINDOWS 0x80ull  /* memory windows of types 1 and 2B */
#define RNICSIM_FEATURE_RAW 0x100ull  /* raw packets: queue pairs, flows, receive-side scaling */
#define RNICSIM_FEATURE_XRC 0x200ull
#define RNICSIM_FEATURE_DEVICE_MEMORY 0x400ull
#define RNICSIM_FEATURE_ON_DEMAND 0x800ull  /* regions whose pages the device requests from the host */
#define RNICSIM_FEATURE_ATOMIC_WRITE 0x1000ull
#define RNICSIM_FEATURE_PACING 0x2000ull  /* Qpc::rate_limit */
#define RNICSIM_FEATURE_SOURCE_QPN 0x4000ull  /* Qpc::source_qpn */
#define RNICSIM_FEATURE_WRITE_PADDING 0x8000ull  /* Qpc::kPadWrites */
#define RNICSIM_FEATURE_RELAXED_ORDERING 0x10000ull
#define RNICSIM_FEATURE_FAST_REGISTER 0x20000ull  /* MptKind::fast_register and its work request */

/* A UAR page. A process maps only its own pages; the device refuses a doorbell whose QP or CQ names another page. */
#define RNICSIM_UAR_SEND_DOORBELL 0x000u  /* SendDoorbell, 8 bytes */
#define RNICSIM_UAR_CQ_ARM 0x010u  /* CqArm, 8 bytes */
#define RNICSIM_UAR_EQ_DOORBELL 0x020u  /* EqDoorbell, 8 bytes; page 0 only */
#define RNICSIM_UAR_BLUE_FLAME0 0x800u  /* a whole send WQE, at most kBlueFlameBytes */
#define RNICSIM_UAR_BLUE_FLAME1 0x900u  /* used in turn with kBlueFlame0 */
#define RNICSIM_UAR_BLUE_FLAME_BYTES 256u

/* A write to a bus address in the MSI window is an interrupt, as on x86: address kMsiWindow + 16 * vector, data =
 * vector. */
#define RNICSIM_MSI_WINDOW 0xfee00000ull
#define RNICSIM_MSI_WINDOW_SIZE 0x100000ull

#endif  /* RNICSIM_ABI_DEVICE_H */
