// Who owns what: the objects that the kernel gave to its processes, and which of them use which.
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
#include "model/host/number_pool.h"
#include "model/host/range_pool.h"
#include "model/host/xrc_domains.h"

namespace rnicsim::host {

struct Pd {
  Pasid owner;
  std::uint32_t users = 0;
  bool orphan = false;                     // its owner has died
};
// A context that a process opened, or imported: by its file, with the PDs and regions of its owner.
struct ContextRight {
  Pasid holder;
  Pasid owner;                             // of the objects
  ContextFile file;
};
// A range of the device's own memory: whole pages, as processes map them.
struct DeviceRange {
  Pasid owner;
  std::uint32_t bytes;                     // that were asked for
  std::uint32_t users = 0;
  bool orphan = false;                     // its owner has died

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
  std::optional<std::uint32_t> channel{};  // of its completions
  std::optional<std::uint32_t> events{};   // channel of its asynchronous events
};
// Where a memory region lies.
struct RegionPlace {
  std::uint32_t pd;
  std::uint32_t first_page = 0;            // in the MTT
  std::uint32_t pages = 0;
  std::uint8_t log_page = 0;
  bool on_demand = false;                  // it has no pages in the MTT
  std::uint64_t bus_address = 0;
  std::uint64_t length = 0;
  std::optional<std::uint32_t> device_range{};  // the device has the memory: `bus_address` is an offset there

  bool has_pages_of(const RegionPlace& other) const {
    return first_page == other.first_page && pages == other.pages;
  }
};
struct MemoryRegion {
  Pasid owner;
  RegionPlace place;
  std::optional<RegionPlace> next;         // it is being registered anew
};
struct MemoryWindow {
  Pasid owner;
  std::uint32_t pd;
};
struct SharedReceiveQueue {
  Pasid owner;
  std::uint32_t pd;
  std::uint32_t users = 0;
  std::optional<std::uint32_t> xrcd{};     // XRC, with the CQ of its completions
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
  std::uint32_t users = 0;                 // contexts of receive-side scaling and flows
  std::optional<std::uint32_t> events{};
  boost::container::flat_set<Gid> groups{};  // to which it is attached
  // One that receives for an XRC domain has nothing of the above, and the kernel owns it; each process that made or
  // opened it has a handle, and the last to go takes it along.
  struct Handle {
    Pasid process;
    std::optional<std::uint32_t> events{};
  };
  std::optional<std::uint32_t> xrcd{};
  std::vector<Handle> handles{};
  bool going = false;                      // its last handle is being closed
};
// A context of receive-side scaling; its number is one of the QPs'.
struct RssContext {
  Pasid owner;
  std::vector<std::uint32_t> qpns;         // one may be there often
  std::uint32_t users = 0;                 // flows
};
struct FlowCounter {
  Pasid owner;
  std::uint32_t users = 0;                 // flows
};
struct Flow {
  Pasid owner;
  std::uint32_t qpn;                       // or of an RSS context
  std::optional<std::uint32_t> counter{};
};

class Objects {
 public:
  // Below it are numbers with a meaning: QP0, QP1 and what may come.
  static constexpr std::uint32_t kFirstQpn = 0x40;

  // The device's limits, known after it was asked.
  void set_limits(const abi::DeviceCapabilities& device);
  // Those of a process: what numbers with a meaning take is not its to have.
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

  // --- The device's own memory; a range's number is its offset.
  // EINVAL: of no bytes, or an alignment beyond 64 bits; ENOMEM.
  int alloc_dm(Pasid owner, std::uint64_t bytes, std::uint64_t log_alignment, std::uint32_t& offset);
  int free_dm(Pasid process, std::uint32_t offset);  // EBUSY while a region lies there; ENOENT
  int import_dm(Pasid holder, std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) const;
  // Where a region [offset, offset + bytes) may lie; nullopt: nowhere.
  std::optional<std::uint32_t> find_device_range(Pasid process, std::uint64_t offset, std::uint64_t bytes) const;
  // A page of the process's is mapped by it as a whole.
  bool may_access_device_memory(Pasid process, std::uint64_t offset, std::uint64_t bytes) const;

  // What a process may use: its own, and that of the contexts that it imported.
  bool may_use(Pasid process, Pasid owner) const;
  template <class Object>
  Object* find_usable(std::map<std::uint32_t, Object>& objects, Pasid process, std::uint32_t number) const {
    const auto found = objects.find(number);
    return found != objects.end() && may_use(process, found->second.owner) ? &found->second : nullptr;
  }

  // Its own queue pair, or one of a domain that it has a handle to.
  QueuePair* find_qp(Pasid process, std::uint32_t qpn);
  int open_qp(Pasid process, std::uint32_t xrcd, std::uint32_t qpn, std::optional<std::uint32_t> events);
  // Of a domain's: the process's handle with that channel, or else one of its others, if there is another handle than
  // that. False: to close it is to destroy the queue pair.
  bool close_handle(QueuePair& qp, Pasid process, std::uint32_t events);
  // All of the process's; false: there are none besides, and they stay.
  bool close_handles(QueuePair& qp, Pasid process);

  void add_cq(std::uint32_t cqn, const CompletionQueue& cq);
  void add_mr(std::uint32_t index, const MemoryRegion& mr);
  // Takes what a region's next place needs besides its pages; then the next one or the old one is given back.
  void begin_move(MemoryRegion& mr, const RegionPlace& next);
  void end_move(MemoryRegion& mr, bool moved);
  void add_mw(std::uint32_t index, const MemoryWindow& mw);
  void add_srq(std::uint32_t srqn, const SharedReceiveQueue& srq);
  void add_qp(std::uint32_t qpn, const QueuePair& qp);
  void add_rss(std::uint32_t number, const RssContext& rss);
  void add_flow(std::uint32_t number, const Flow& flow);
  void remove_cq(std::uint32_t cqn);
  void remove_mpt(std::uint32_t index);    // a region or a window
  void remove_srq(std::uint32_t srqn);
  void remove_qp(std::uint32_t qpn);
  void remove_rss(std::uint32_t number);
  void remove_flow(std::uint32_t number);
  void remove_counter(std::uint32_t number);
  // What needs no device any more: a dead process's contexts, pages and PDs. A PD that another process can use stays
  // until it no longer can.
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
  NumberPool mr_numbers;                   // of regions and windows
  NumberPool srq_numbers;
  NumberPool qp_numbers;                   // of QPs and RSS contexts
  NumberPool counter_numbers;
  NumberPool flow_numbers;
  RangePool pages;                         // of the MTT
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
