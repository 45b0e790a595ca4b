// The operating system's services. Each returns 0 or a positive errno, unless it says otherwise.
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
  // Reachable by DMA from now on, for writing only if `writable`; counted. EFAULT: some of it is not there, or may not
  // be used so. `bus_address` is where the device finds it: at the address itself, unless what lay there earlier is
  // still pinned.
  virtual int pin(const void* address, std::size_t bytes, bool writable, std::uint64_t& bus_address) = 0;
  virtual int unpin(std::uint64_t bus_address, std::size_t bytes, bool writable) = 0;
  // That memory is from now on a region's on demand, which is there for the device as long as it is for the process:
  // who unmaps it waits until the device is done with it. All of the address space may be such a region.
  virtual void on_demand(const void*, std::size_t) {}
  // Pages of such a region, by its index, are brought in. EFAULT: some are not there, which is only said to who waits.
  virtual int make_present(std::uint32_t, std::uint64_t address, std::size_t bytes, bool writable, bool waits) {
    static_cast<void>(address), static_cast<void>(bytes), static_cast<void>(writable), static_cast<void>(waits);
    return EOPNOTSUPP;
  }
  virtual int alloc_pd(std::uint32_t& number) = 0;
  virtual int dealloc_pd(std::uint32_t number) = 0;
  virtual int alloc_uar(std::uint32_t& page) = 0;
  virtual int free_uar(std::uint32_t page) = 0;
  // Of the device's own memory, which begins at abi::kDeviceMemoryBase of its BAR; what is given out is zeros. ENOMEM.
  virtual int alloc_dm(std::uint64_t /*bytes*/, std::uint32_t /*log_alignment*/, std::uint32_t& /*offset*/) {
    return EOPNOTSUPP;
  }
  virtual int free_dm(std::uint32_t /*offset*/) { return ENOENT; }  // EBUSY while a region lies there
  virtual int import_dm(std::uint32_t /*context*/, std::uint32_t /*offset*/, std::uint32_t& /*bytes*/) {
    return ENOENT;
  }
  // Whoever has `fd`, or a duplicate of it, may import the context: use this process's PDs and regions. EINVAL: it is
  // no context's. Opening and closing are part of what opening the device costs.
  virtual int open_context(int fd, std::uint32_t& number) = 0;
  virtual int import_context(int fd, std::uint32_t& number) = 0;
  virtual int close_context(std::uint32_t number) = 0;
  virtual int import_pd(std::uint32_t context, std::uint32_t number) = 0;  // ENOENT: none of that context's
  // The XRC domain of the file behind `fd`, which all processes of the host share that open one of the same file; with
  // fd -1 one that nobody shares. `flags`: O_CREAT, O_EXCL. EAGAIN: there is none, and O_CREAT is not asked for;
  // EINVAL: there is one, and O_EXCL is; EBADF.
  virtual int open_xrcd(int fd, int flags, std::uint32_t& number) = 0;
  virtual int close_xrcd(std::uint32_t number) = 0;  // EBUSY while an object of this process uses it; ENOENT
  // One more handle to a domain's receiving QP, whose events the channel hears, too. `destroy_qp` closes it; EINVAL.
  virtual int open_qp(std::uint32_t xrcd, std::uint32_t qpn, std::uint32_t events) = 0;
  // Carries a command mailbox to the device. The kernel chooses CommandHeader::object of create_*, fills pasid, eqn
  // (from the completion vector that the process put there) and checks that other numbers are this process's own.
  // An errno here is the kernel's refusal; the device's status is in the output's CommandResult. Of an object that it
  // makes, the channel `events` hears the asynchronous events (0: none does; ENOENT: not this process's).
  virtual int command(std::uint32_t events, std::span<const std::byte> input, std::span<std::byte> output) = 0;
  // Event records are written to `fd` (the write end of the caller's pipe), which the port duplicates. Those that find
  // it full are kept, in order, and written by refill_channel, as many as fit.
  virtual int open_channel(int fd, std::uint32_t& channel) = 0;
  virtual int close_channel(std::uint32_t channel) = 0;
  virtual int bind_completions(std::uint32_t cqn, std::uint32_t channel) = 0;
  virtual int bind_events(std::uint32_t channel) = 0;  // of port and device
  virtual int refill_channel(std::uint32_t channel) = 0;
  virtual int port_info(abi::NetworkInterface& interface) = 0;
  virtual int gid_entry(std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) = 0;  // ENODATA: empty; EINVAL
  // For a path that names no GID: the GID of the port with this LID, and the index of ours to reach it. ENOENT.
  virtual int lid_route(std::uint16_t lid, abi::GidEntry& route) = 0;
  // Fills the MAC address of a path, to a host or to a group. ETIMEDOUT, after a second: nobody on the link has the
  // address; EHOSTUNREACH: no route leads there; EINVAL: no such source GID.
  virtual int resolve_path(abi::AddressVector& path) = 0;
  virtual std::uint32_t completion_vectors() const = 0;
  // A command of <rdma/rdma_user_cm.h>, as Call::rdma_cm has it, of the ids and events of that channel, which is one of
  // the first device's.
  virtual int rdma_cm(std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
                      std::span<std::byte> output) = 0;
  // Until the pipe of the channel, whose read end is `fd`, holds a record; false when a signal came first. Unless the
  // caller has just `found_nothing` there, it may be left to do that: true at once.
  virtual bool wait_for_event(std::uint32_t channel, int fd, bool found_nothing) = 0;
  // Seconds since 1970, by the host's real-time clock, when its device's clock was at 0.
  virtual std::uint64_t epoch() const { return 0; }

 protected:
  ~OsServices() = default;
};

}  // namespace rnicsim
