// What stands between a process and the device's command queue: refuses what the process may not ask, fills in what
// only the kernel knows, and keeps the record of what came of it.
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

  // `link`: the device's interface; without one no address is on its link.
  CommandGate(Objects& objects, std::vector<Gid> gids, Neighbours neighbours, Vectors vectors, ByteCount page_size,
              bool raw_packets, const abi::NetworkInterface& link = {})
      : objects_(objects),
        gids_(std::move(gids)),
        neighbours_(std::move(neighbours)),
        vectors_(vectors),
        page_size_(page_size),
        raw_packets_(raw_packets),
        link_(link) {}

  // 0, with the mailbox completed and a new object recorded, so that what it uses cannot go meanwhile; or the errno of
  // the refusal.
  int admit(Pasid process, std::vector<std::byte>& input);
  // The context that the device must have memory for, when the mailbox creates an object.
  struct Context {
    abi::IcmTable table;
    std::uint32_t index;
  };
  static std::optional<Context> context_of(std::span<const std::byte> input);
  // The same of a mailbox that destroys an object.
  static std::optional<Context> destroyed_by(std::span<const std::byte> input);
  // Regions of that memory of a process are registered in such pages, if they are larger than the host's. Takes the
  // place of what was said of it before.
  void back(Pasid process, std::uint64_t begin, std::uint64_t bytes, ByteCount page);
  void forget(Pasid process) { backings_.erase(process); }
  // The pages that an admitted mailbox registers, if there are any; the device must find their entries in the MTT.
  struct Pages {
    std::uint32_t first;
    std::uint32_t count;
    std::uint64_t bus_address;             // of the first
    ByteCount size;
  };
  std::optional<Pages> pages_of(std::span<const std::byte> input) const;
  const Neighbours& neighbours() const { return neighbours_; }
  // Fills the MAC address, of a host or of a group: 0 or errno. ETIMEDOUT: on the link, but nobody answers, and the
  // caller waits for that; EHOSTUNREACH: no route leads there.
  int resolve(abi::AddressVector& path) const;
  // Of an admitted mailbox that destroys a queue pair which others have, too: closes the process's handle to it, and
  // the device need not hear of it.
  bool closes_handle(Pasid process, std::uint32_t events, std::span<const std::byte> input);
  // The device answered an admitted mailbox.
  void settle(std::span<const std::byte> input, abi::CommandStatus status);

 private:
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
  std::map<Pasid, std::vector<Backing>> backings_;  // each process's in the order of their addresses, none over another
};

}  // namespace rnicsim::host
