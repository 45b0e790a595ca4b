// SPDX-License-Identifier: Apache-2.0
// Checks commands of processes before the device executes them: refuses what a process may not do, adds the values that
// only the kernel knows, and records the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/abi/command.h"
#include "model/base/units.h"
#include "model/host/gids.h"
#include "model/host/objects.h"

namespace rnicsim::host {

class CommandGate {
 public:
  // Completion vector v is served by the EQ first_completion_eqn + v.
  struct Vectors {
    std::uint32_t first_completion_eqn;
    std::uint32_t count;
  };

  // `link`: the interface of the device; without `link` no address counts as on-link.
  CommandGate(Objects& objects, std::vector<Gid> gids, Neighbours neighbours, Vectors vectors, ByteCount page_size,
              bool raw_packets, const abi::NetworkInterface& link = {})
      : objects_(objects),
        gids_(std::move(gids)),
        neighbours_(std::move(neighbours)),
        vectors_(vectors),
        page_size_(page_size),
        raw_packets_(raw_packets),
        link_(link) {}

  // Checks and completes the mailbox. 0: a new object is recorded, so that the objects it uses cannot be destroyed
  // meanwhile. Else the errno of the refusal.
  int admit(Pasid process, std::vector<std::byte>& input);
  // The context for which the device needs memory, if the mailbox creates an object.
  struct Context {
    abi::IcmTable table;
    std::uint32_t index;
  };
  static std::optional<Context> context_of(std::span<const std::byte> input);
  // The context of the object that the mailbox destroys.
  static std::optional<Context> destroyed_by(std::span<const std::byte> input);
  // Sets the page size for regions in this memory of a process, if it is larger than the host's. Replaces earlier
  // settings of the range.
  void back(Pasid process, std::uint64_t begin, std::uint64_t bytes, ByteCount page);
  void forget(Pasid process) { backings_.erase(process); }
  // The pages that an admitted mailbox registers; nullopt: none. Their entries must be in the MTT before the device
  // executes the command.
  struct Pages {
    std::uint32_t first;
    std::uint32_t count;
    std::uint64_t bus_address;  // address of the first page
    ByteCount size;
  };
  std::optional<Pages> pages_of(std::span<const std::byte> input) const;
  const Neighbours& neighbours() const { return neighbours_; }
  // Fills in the MAC address of a host or of a multicast group. 0 or errno. ETIMEDOUT: the address is on the link, but
  // no host has it (the caller waits for the timeout); EHOSTUNREACH: no route.
  int resolve(abi::AddressVector& path) const;
  // For an admitted mailbox that destroys a queue pair with several handles: closes one handle of the process. True:
  // the device must not get the command.
  bool closes_handle(Pasid process, std::uint32_t events, std::span<const std::byte> input);
  // Records the device's answer to an admitted mailbox.
  void settle(std::span<const std::byte> input, abi::CommandStatus status);

 private:
  int admit_use(Pasid process, std::span<const std::byte> input);
  int admit_create_cq(Pasid process, std::span<std::byte> input);
  int admit_create_mpt(Pasid process, std::span<std::byte> input);
  int admit_create_region(Pasid process, abi::CreateMpt& mailbox);
  int admit_modify_mpt(Pasid process, std::span<std::byte> input);
  int place_on_device(Pasid process, const abi::Mpt& context, RegionPlace& place) const;
  int place_region(Pasid process, const abi::Mpt& context, RegionPlace& place);
  int admit_create_srq(Pasid process, std::span<std::byte> input);
  int admit_create_qp(Pasid process, std::span<std::byte> input);
  int admit_create_domain_qp(Pasid process, std::span<std::byte> input);
  int admit_modify_qp(Pasid process, std::span<std::byte> input);
  int admit_destroy_qp(Pasid process, std::uint32_t qpn);
  int admit_create_rss(Pasid process, std::span<std::byte> input);
  int admit_create_flow(Pasid process, std::span<std::byte> input);
  int admit_create_counter(Pasid process, std::span<std::byte> input);
  bool is_raw_qp(Pasid process, std::uint32_t qpn) const;
  bool may_receive_flow(Pasid process, std::uint32_t qpn) const;
  int resolve_host(abi::AddressVector& path) const;
  ByteCount page_size(Pasid process, std::uint64_t begin, std::uint64_t bytes) const;

  struct Backing {
    std::uint64_t begin;
    std::uint64_t end;
    ByteCount page;
  };

  Objects& objects_;
  std::vector<Gid> gids_;
  Neighbours neighbours_;
  Vectors vectors_;
  ByteCount page_size_;
  bool raw_packets_;
  abi::NetworkInterface link_;
  std::map<Pasid, std::vector<Backing>> backings_;  // by address, without overlap
};

}  // namespace rnicsim::host
