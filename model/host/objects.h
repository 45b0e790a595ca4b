// SPDX-License-Identifier: Apache-2.0
// The objects that the kernel gave to its processes: owners, and which object uses which.
#pragma once

#include <boost/container/flat_set.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/abi/command.h"
#include "model/base/pcie.h"
#include "model/host/context_file.h"
#include "model/host/gids.h"
#include "model/host/memory/range_pool.h"
#include "model/host/number_pool.h"
#include "model/host/xrc_domains.h"

namespace rnicsim::host {

struct Pd {
  Pasid owner;
  std::uint32_t users = 0;
  bool orphan = false;  // the owner has died
};
// A context that a process opened or imported, named by its file. The holder may use PDs and regions of the owner.
struct ContextRight {
  Pasid holder;
  Pasid owner;  // owner of the objects
  ContextFile file;
};
// A range of the device's own memory: whole pages, because processes map pages.
struct DeviceRange {
  Pasid owner;
  std::uint32_t bytes;  // requested size
  std::uint32_t users = 0;
  bool orphan = false;  // the owner has died

  static constexpr std::uint32_t kPage = 4096;
  std::uint32_t pages() const { return (bytes + kPage - 1) / kPage; }
};
struct UarPage {
  Pasid owner;
  std::uint32_t users = 0;
};
struct CompletionQueue {
  Pasid owner;
  std::uint32_t uar;
  std::uint32_t users = 0;
  std::optional<std::uint32_t> channel{};  // for completion events
  std::optional<std::uint32_t> events{};   // channel for asynchronous events
};
// Location of a memory region.
struct RegionPlace {
  std::uint32_t pd;
  std::uint32_t first_page = 0;  // index in the MTT
  std::uint32_t pages = 0;
  std::uint8_t log_page = 0;
  bool on_demand = false;  // no pages in the MTT
  std::uint64_t bus_address = 0;
  std::uint64_t length = 0;
  std::optional<std::uint32_t> device_range{};  // memory of the device: `bus_address` is an offset there

  bool has_pages_of(const RegionPlace& other) const { return first_page == other.first_page && pages == other.pages; }
};
struct MemoryRegion {
  Pasid owner;
  RegionPlace place;
  std::optional<RegionPlace> next;  // the new location while the region is being re-registered
};
struct MemoryWindow {
  Pasid owner;
  std::uint32_t pd;
};
struct SharedReceiveQueue {
  Pasid owner;
  std::uint32_t pd;
  std::uint32_t users = 0;
  std::optional<std::uint32_t> xrcd{};  // XRC only, with the CQ for its completions
  std::uint32_t cqn = 0;
  std::optional<std::uint32_t> events{};
};
struct QueuePair {
  Pasid owner;
  std::uint32_t pd;
  std::uint32_t uar;
  std::uint32_t send_cqn;
  std::uint32_t receive_cqn;
  std::optional<std::uint32_t> srqn{};
  abi::Transport transport = abi::Transport::rc;
  std::uint32_t users = 0;  // RSS contexts and flows that lead here
  std::optional<std::uint32_t> events{};
  boost::container::flat_set<Gid> groups{};  // multicast groups to which the QP is attached
  // A QP that receives for an XRC domain uses none of the members above, and the kernel owns it. Each process that made
  // or opened the QP has a handle; closing the last handle destroys the QP.
  struct Handle {
    Pasid process;
    std::optional<std::uint32_t> events{};
  };
  std::optional<std::uint32_t> xrcd{};
  std::vector<Handle> handles{};
  bool going = false;  // the last handle is being closed
};
// A context of receive-side scaling; numbered like QPs.
struct RssContext {
  Pasid owner;
  std::vector<std::uint32_t> qpns;  // a QP may occur several times
  std::uint32_t users = 0;          // flows
};
struct FlowCounter {
  Pasid owner;
  std::uint32_t users = 0;  // flows
};
struct Flow {
  Pasid owner;
  std::uint32_t qpn;  // QP or RSS context
  std::optional<std::uint32_t> counter{};
};

class Objects {
 public:
  // First number for processes. Lower numbers are reserved: QP0, QP1 and future well-known QPs.
  static constexpr std::uint32_t kFirstQpn = 0x40;

  // Sets the device's limits, known after bring-up.
  void set_limits(const abi::DeviceCapabilities& device);
  // Reduces the device's limits by the reserved numbers, to the limits of processes.
  static void leave_to_processes(abi::DeviceCapabilities& device);

  // 0 or errno.
  int alloc_pd(Pasid owner, std::uint32_t& number);
  int dealloc_pd(Pasid owner, std::uint32_t number);
  int alloc_uar(Pasid owner, std::uint32_t& page);
  int free_uar(Pasid owner, std::uint32_t page);
  int open_context(Pasid owner, const ContextFile& file, std::uint32_t& number);
  int import_context(Pasid holder, const ContextFile& file, std::uint32_t& number);
  int close_context(Pasid holder, std::uint32_t number);
  void close_contexts(Pasid holder);
  int import_pd(Pasid holder, std::uint32_t context, std::uint32_t number) const;

  template <class Object>
  static Object* find(std::map<std::uint32_t, Object>& objects, Pasid owner, std::uint32_t number) {
    const auto found = objects.find(number);
    return found != objects.end() && found->second.owner == owner ? &found->second : nullptr;
  }

  // --- The device's own memory; the offset is a range's number.
  // EINVAL: 0 bytes, or an alignment beyond 64 bits; ENOMEM.
  int alloc_dm(Pasid owner, std::uint64_t bytes, std::uint64_t log_alignment, std::uint32_t& offset);
  int free_dm(Pasid process, std::uint32_t offset);  // EBUSY: a region uses the range; ENOENT
  int import_dm(Pasid holder, std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) const;
  // The range that contains the region [offset, offset + bytes); nullopt: none.
  std::optional<std::uint32_t> find_device_range(Pasid process, std::uint64_t offset, std::uint64_t bytes) const;
  // True for all of a mapped page, also behind the end of the range.
  bool may_access_device_memory(Pasid process, std::uint64_t offset, std::uint64_t bytes) const;

  // True for the process's own objects and those of contexts that it imported.
  bool may_use(Pasid process, Pasid owner) const;
  template <class Object>
  Object* find_usable(std::map<std::uint32_t, Object>& objects, Pasid process, std::uint32_t number) const {
    const auto found = objects.find(number);
    return found != objects.end() && may_use(process, found->second.owner) ? &found->second : nullptr;
  }

  // Returns the process's own queue pair, or one of an XRC domain for which the process has a handle.
  QueuePair* find_qp(Pasid process, std::uint32_t qpn);
  int open_qp(Pasid process, std::uint32_t xrcd, std::uint32_t qpn, std::optional<std::uint32_t> events);
  // Closes the process's handle with that channel, or else another handle of the process. False: the queue pair has
  // only one handle; destroy the queue pair instead.
  bool close_handle(QueuePair& qp, Pasid process, std::uint32_t events);
  // Closes all handles of the process. False: no other process has a handle; the handles stay.
  bool close_handles(QueuePair& qp, Pasid process);

  void add_cq(std::uint32_t cqn, const CompletionQueue& cq);
  void add_mr(std::uint32_t index, const MemoryRegion& mr);
  // begin_move() takes the resources of the next location except its pages. end_move() gives back the old location, or
  // the next one if the move failed.
  void begin_move(MemoryRegion& mr, const RegionPlace& next);
  void end_move(MemoryRegion& mr, bool moved);
  void add_mw(std::uint32_t index, const MemoryWindow& mw);
  void add_srq(std::uint32_t srqn, const SharedReceiveQueue& srq);
  void add_qp(std::uint32_t qpn, const QueuePair& qp);
  void add_rss(std::uint32_t number, const RssContext& rss);
  void add_flow(std::uint32_t number, const Flow& flow);
  void remove_cq(std::uint32_t cqn);
  void remove_mpt(std::uint32_t index);  // a region or a window
  void remove_srq(std::uint32_t srqn);
  void remove_qp(std::uint32_t qpn);
  void remove_rss(std::uint32_t number);
  void remove_flow(std::uint32_t number);
  void remove_counter(std::uint32_t number);
  // Removes objects that the device does not know: a dead process's contexts, doorbell pages and PDs. A PD stays while
  // another process can use it.
  void remove_software_objects(Pasid owner);

  std::map<std::uint32_t, Pd> pds;
  std::map<std::uint32_t, UarPage> uars;
  std::map<std::uint32_t, DeviceRange> device_ranges;
  std::map<std::uint32_t, CompletionQueue> cqs;
  std::map<std::uint32_t, MemoryRegion> mrs;
  std::map<std::uint32_t, MemoryWindow> mws;
  std::map<std::uint32_t, SharedReceiveQueue> srqs;
  std::map<std::uint32_t, QueuePair> qps;
  std::map<std::uint32_t, RssContext> rss_contexts;
  std::map<std::uint32_t, FlowCounter> counters;
  std::map<std::uint32_t, Flow> flows;
  XrcDomains domains;

  NumberPool cq_numbers;
  NumberPool mr_numbers;  // numbers of regions and windows
  NumberPool srq_numbers;
  NumberPool qp_numbers;  // numbers of QPs and RSS contexts
  NumberPool counter_numbers;
  NumberPool flow_numbers;
  RangePool pages;  // entries of the MTT
  std::uint64_t max_mr_size = 0;

 private:
  template <class Object>
  bool is_wanted(const Object& object) const;
  void remove_unwanted();
  void leave_pd(std::uint32_t number);
  void leave_place(const RegionPlace& place);
  void free_range(std::map<std::uint32_t, DeviceRange>::iterator range);
  std::uint32_t& users_of_receiver(std::uint32_t qpn);

  std::map<std::uint32_t, ContextRight> contexts_;
  std::uint32_t next_context_ = 1;
  NumberPool pd_numbers_;
  NumberPool uar_numbers_;
  RangePool device_pages_;
};

}  // namespace rnicsim::host
