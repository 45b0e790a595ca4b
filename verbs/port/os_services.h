// SPDX-License-Identifier: Apache-2.0
// Services of the simulated operating system. Calls return 0 or a positive errno unless their comment says otherwise.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/abi/attach.h"
#include "model/abi/context.h"

namespace rnicsim {

class OsServices {
 public:
  // Makes memory accessible by DMA: for reads, and with `writable` also for writes. Pins of the same page are counted.
  // EFAULT: not mapped, or without the needed permission. `bus_address` equals the address, unless memory that was at
  // this address earlier is still pinned.
  virtual int pin(const void* address, std::size_t bytes, bool writable, std::uint64_t& bus_address) = 0;
  virtual int unpin(std::uint64_t bus_address, std::size_t bytes, bool writable) = 0;
  // The memory belongs to an on-demand region from now on: the device may access it while the process has it mapped,
  // and an unmap waits until the device is done. The region may cover the whole address space.
  virtual void on_demand(const void*, std::size_t) {}
  // Brings pages of the on-demand region with this index in. EFAULT, only with `waits`: some pages are not mapped.
  virtual int make_present(std::uint32_t, std::uint64_t address, std::size_t bytes, bool writable, bool waits) {
    static_cast<void>(address), static_cast<void>(bytes), static_cast<void>(writable), static_cast<void>(waits);
    return EOPNOTSUPP;
  }
  virtual int alloc_pd(std::uint32_t& number) = 0;
  virtual int dealloc_pd(std::uint32_t number) = 0;
  virtual int alloc_uar(std::uint32_t& page) = 0;
  virtual int free_uar(std::uint32_t page) = 0;
  // Memory of the device, by its offset from abi::kDeviceMemoryBase in the BAR. It is zeroed. ENOMEM: none is left.
  virtual int alloc_dm(std::uint64_t /*bytes*/, std::uint32_t /*log_alignment*/, std::uint32_t& /*offset*/) {
    return EOPNOTSUPP;
  }
  virtual int free_dm(std::uint32_t /*offset*/) { return ENOENT; }  // EBUSY: a region uses the memory
  virtual int import_dm(std::uint32_t /*context*/, std::uint32_t /*offset*/, std::uint32_t& /*bytes*/) {
    return ENOENT;
  }
  // A process that has `fd` or a duplicate may import the context and then use this process's PDs and regions. EINVAL:
  // `fd` is not the file of a context. No CPU time is charged: opening a device has a cost of its own.
  virtual int open_context(int fd, std::uint32_t& number) = 0;
  virtual int import_context(int fd, std::uint32_t& number) = 0;
  virtual int close_context(std::uint32_t number) = 0;
  virtual int import_pd(std::uint32_t context, std::uint32_t number) = 0;  // ENOENT: no such PD in that context
  // Opens the XRC domain of the file behind `fd`. All processes of the host that open the same file share the domain.
  // fd = -1: a private domain. `flags`: O_CREAT, O_EXCL. EAGAIN: no domain, and O_CREAT is not set; EINVAL: there is a
  // domain, and O_EXCL is set; EBADF.
  virtual int open_xrcd(int fd, int flags, std::uint32_t& number) = 0;
  virtual int close_xrcd(std::uint32_t number) = 0;  // EBUSY: an object of this process uses the domain; ENOENT
  // Adds a handle to a receiving QP of a domain. Channel `events` also gets the QP's events. destroy_qp closes the
  // handle. EINVAL.
  virtual int open_qp(std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events) = 0;
  // Executes a command mailbox on the device. The kernel chooses CommandHeader::object of create_*, fills in pasid and
  // eqn (from the completion vector that the process put there), and checks that other object numbers belong to this
  // process. An errno is the kernel's refusal; the device's status is in the output's CommandResult. Asynchronous
  // events of a created object go to the channel `events` (0: to none; ENOENT: not a channel of this process).
  virtual int command(std::uint32_t events, std::span<const std::byte> input, std::span<std::byte> output) = 0;
  // Event records are written to `fd`, the write end of the caller's pipe; the port duplicates the descriptor. Records
  // that find the pipe full are kept in order. refill_channel() writes as many of them as fit.
  virtual int open_channel(int fd, std::uint32_t& channel) = 0;
  virtual int close_channel(std::uint32_t channel) = 0;
  virtual int bind_completions(std::uint32_t cqn, std::uint32_t channel) = 0;
  virtual int bind_events(std::uint32_t channel) = 0;  // events of port and device
  virtual int refill_channel(std::uint32_t channel) = 0;
  virtual int port_info(abi::NetworkInterface& interface) = 0;
  virtual int gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) = 0;  // ENODATA: empty; EINVAL
  // For a path without a GID: the GID of the port with this LID, and the index of the local GID that reaches it.
  // ENOENT.
  virtual int lid_route(std::uint16_t lid, abi::GidEntry& route) = 0;
  // Fills in the MAC address of a path to a host or a multicast group. ETIMEDOUT, after a second: no host on the link
  // has the address; EHOSTUNREACH: no route; EINVAL: no such source GID.
  virtual int resolve_path(abi::AddressVector& path) = 0;
  virtual std::uint32_t completion_vectors() const = 0;
  // Executes a command of <rdma/rdma_user_cm.h> (Call::rdma_cm) for ids and events of the channel, which belongs to
  // the first device.
  virtual int rdma_cm(std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
                      std::span<std::byte> output) = 0;
  // Waits until the pipe of the channel, whose read end is `fd`, holds a record. False: a signal came first. May
  // return true at once unless the caller has `found_nothing` in the pipe.
  virtual bool wait_for_event(std::uint32_t channel, int fd, bool found_nothing) = 0;
  // Real-time clock of the host, in seconds since 1970, at the moment when the device's clock was 0.
  virtual std::uint64_t epoch() const { return 0; }

 protected:
  ~OsServices() = default;
};

}  // namespace rnicsim
