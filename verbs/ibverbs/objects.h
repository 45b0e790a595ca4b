// SPDX-License-Identifier: Apache-2.0
// Verbs objects of a context. Each begins with the struct that programs see, so the two have the same address.
#pragma once

#include <infiniband/verbs.h>

#include <boost/container/flat_set.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "verbs/ibverbs/device.h"
#include "verbs/ibverbs/memory/dma_memory.h"
#include "verbs/ibverbs/queue_lock.h"
#include "verbs/port/event_pipe.h"
#include "verbs/provider/completion_ring.h"
#include "verbs/provider/receive_ring.h"
#include "verbs/provider/send_ring.h"
#include "verbs/provider/shared_receive_ring.h"
#include "verbs/provider/wqe_builder.h"

namespace rnicsim::verbs {

// Thread domain: its QPs share a doorbell page that no other QP uses; its CQs need no lock.
struct Td : ibv_td {
  std::uint32_t number = 0;
  DoorbellPage* page = nullptr;  // nullptr: the kernel had no free page

  static Td& of(ibv_td* td) { return *static_cast<Td*>(td); }
};

struct Pd : ibv_pd {
  std::atomic<std::uint32_t> address_handles{0};  // the kernel does not know AHs
  // Set for a parent domain.
  struct Parent {
    std::uint32_t number = 0;
    Pd* protection = nullptr;
    Td* thread = nullptr;
    Allocator allocator;
  };
  std::optional<Parent> parent;
  std::uint32_t import = 0;  // not 0: the kernel's PD has other users, too

  static Pd& of(ibv_pd* pd) { return *static_cast<Pd*>(pd); }
};

struct Mr : ibv_mr {
  bool null = false;       // no memory of the program
  bool on_device = false;  // in the device's memory; `bus_address` is an offset there
  bool pinned = false;
  bool writable = false;  // by the device
  std::uint64_t bus_address = 0;
  std::uint32_t import = 0;  // not 0: the kernel's region has other users, too
  unsigned access = 0;
  std::uint64_t start = 0;  // lowest address that a work request may name

  bool on_demand() const { return access & IBV_ACCESS_ON_DEMAND; }
  static Mr& of(ibv_mr* mr) { return *static_cast<Mr*>(mr); }
};

// Holds the complete address vector, which is copied into each datagram's WQE.
struct Ah : ibv_ah {
  abi::AddressVector path;

  static Ah& of(ibv_ah* ah) { return *static_cast<Ah*>(ah); }
  static const Ah& of(const ibv_ah* ah) { return *static_cast<const Ah*>(ah); }
};

struct Mw : ibv_mw {
  static Mw& of(ibv_mw* mw) { return *static_cast<Mw*>(mw); }
};

// Device memory. The handle is the offset in it.
struct Dm : ibv_dm {
  explicit Dm(DevicePort& carrier) : ibv_dm{}, port(carrier) {}

  DevicePort& port;  // the allocating process's: a forked child uses its own
  std::uint64_t length = 0;
  std::uint32_t import = 0;  // not 0: the kernel's range has other users, too

  static Dm& of(ibv_dm* dm) { return *static_cast<Dm*>(dm); }
};

struct Channel : ibv_comp_channel {
  explicit Channel(OsServices& system) : ibv_comp_channel{}, pipe(system) {}

  EventPipe pipe;

  static Channel& of(ibv_comp_channel* channel) { return *static_cast<Channel*>(channel); }
};

struct Cq : ibv_cq_ex {
  Cq() : ibv_cq_ex{} {}

  DmaMemory memory;
  DmaMemory record;
  provider::CompletionRing ring;
  QueueLock lock;                                  // protects `ring`, `users` and `shared`
  std::unordered_map<std::uint32_t, Qp*> users;    // QPs by number
  std::unordered_map<std::uint32_t, Srq*> shared;  // XRC SRQs whose receives complete here, by number
  Qp* last_user = nullptr;
  abi::Cqe current;  // the CQE that the extended poll reads
  bool single_threaded = false;
  ibv_pd* parent_domain = nullptr;
  // Notification that the program requested since it took the last event of this CQ.
  enum class Notification : std::uint8_t { none, solicited, any };
  std::atomic<Notification> asked_for{Notification::none};
  // told_at: the consumer index when the program took the last event. seen_when_asked: the index behind the last CQE
  // when the program last requested a notification.
  static constexpr std::uint32_t kNeverTold = ~0u;
  std::atomic<std::uint32_t> told_at{kNeverTold};
  std::uint32_t seen_when_asked = 0;
  std::uint32_t completions_delivered = 0;  // protected by the registry's mutex while the CQ is there
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(context); }
  ibv_cq* handle_of() { return ibv_cq_ex_to_cq(this); }
  static Cq& of(ibv_cq* cq) { return *static_cast<Cq*>(reinterpret_cast<ibv_cq_ex*>(cq)); }
  static Cq& of(ibv_cq_ex* cq) { return *static_cast<Cq*>(cq); }
};

// One open handle of an XRC domain.
struct Xrcd : ibv_xrcd {
  std::uint32_t handle = 0;
  std::uint32_t number = 0;  // the kernel's

  static Xrcd& of(ibv_xrcd* xrcd) { return *static_cast<Xrcd*>(xrcd); }
};

struct Srq : ibv_srq {
  Srq() : ibv_srq{} {}

  DmaMemory memory;
  DmaMemory record;
  provider::SharedReceiveRing ring;  // protected by `lock`, like max_wr and max_sge
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  QueueLock lock;              // lock order: after the lock of a CQ
  const Xrcd* xrcd = nullptr;  // XRC only
  Cq* cq = nullptr;            // XRC only: CQ of the receives
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(context); }
  static Srq& of(ibv_srq* srq) { return *static_cast<Srq*>(srq); }
};

inline constexpr std::uint32_t kMaxSegmentBytes = 0x7fffffff;  // per segment; the length's top bit means inline

// State of the ibv_wr_* interface between wr_start and wr_complete.
struct Batch {
  provider::SendRing::Mark start;
  int error = 0;  // the first error; no WQE of the batch is executed then
  bool building = false;
  bool takes_inline = false;   // by the WQE that is being built
  bool has_data = false;       // the WQE's only data setter was called
  bool wants_address = false;  // UD: wr_set_ud_addr must be called; XRC: wr_set_xrc_srqn
  bool has_address = false;    // ... was called
  std::uint64_t wr_id = 0;
};

// A bind of a type 2 window in a batch that may still be aborted.
struct Binding {
  ibv_mw* window;
  std::uint32_t rkey;
};

struct IndirectionTable;

struct Qp : ibv_qp_ex {
  Qp() : ibv_qp_ex{} {}
  ~Qp() {
    if (page != nullptr) owner().pages.give_back(*page);
  }
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  ibv_qp_cap capabilities{};
  bool signal_all = false;
  std::uint64_t operations = 0;             // IBV_QP_EX_WITH_*: operations of the transport that the device supports
  std::uint64_t known_operations = 0;       // operations that the device supports on some transport
  bool extended = false;                    // ibv_wr_* may be used
  const Xrcd* xrcd = nullptr;               // set: receives for this domain, without queues and CQs of its own
  const IndirectionTable* table = nullptr;  // set: an RSS QP without queues; the device knows no such QP
  std::uint32_t create_flags = 0;           // IBV_QP_CREATE_*
  std::uint32_t source_qpn = 0;             // for IBV_QP_CREATE_SOURCE_QPN
  std::uint32_t max_tso_header = 0;         // 0: no TSO
  std::uint8_t port_number = 0;             // valid from INIT on
  std::atomic<bool> failed{false};          // an error CQE or an event reported that the device moved the QP to ERR
  std::atomic<bool> posted_unseen{false};   // receives posted since the device last had to read the doorbell record
  DmaMemory send_memory;
  DmaMemory receive_memory;
  DmaMemory record;
  DoorbellPage* page = nullptr;
  std::optional<provider::SendRing> send;  // absent if max_send_wr is 0; `receive` likewise
  std::optional<provider::ReceiveRing> receive;
  QueueLock send_lock;
  QueueLock receive_lock;
  provider::WqeBuilder builder{0};  // protected by send_lock
  Batch batch;                      // protected by send_lock
  std::vector<Binding> bindings;    // the batch's; protected by send_lock
  abi::Milestone posting;           // the posts that the next doorbell announces; protected by send_lock
  std::mutex groups_mutex;
  boost::container::flat_set<std::array<std::uint8_t, 16>> groups;  // multicast groups of the QP
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(qp_base.context); }
  bool does(ibv_qp_create_send_ops_flags operation) const { return operations & operation; }
  bool knows(ibv_qp_create_send_ops_flags operation) const { return known_operations & operation; }
  Srq* shared() const { return qp_base.srq != nullptr ? &Srq::of(qp_base.srq) : nullptr; }
  bool of_xrc() const { return qp_base.qp_type == IBV_QPT_XRC_SEND || xrcd != nullptr; }
  // The device's number of the QP or of the RSS object.
  std::uint32_t number() const { return qp_base.qp_num; }
  static Qp& of(ibv_qp* qp) { return *static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
  static Qp& of(ibv_qp_ex* qp) { return *static_cast<Qp*>(qp); }
};

// A receive queue of its own. For the device a raw packet QP without a send queue.
struct Wq : ibv_wq {
  Wq() : ibv_wq{} {}

  std::unique_ptr<Qp> queue;
  bool strips = false;  // the device strips VLAN tags
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(context); }
  static Wq& of(ibv_wq* wq) { return *static_cast<Wq*>(wq); }
};

// Table of work queues. The device gets its contents when an RSS QP is created with it.
struct IndirectionTable : ibv_rwq_ind_table {
  IndirectionTable() : ibv_rwq_ind_table{} {}

  std::vector<Wq*> queues;  // a queue may occur several times

  std::uint32_t number() const { return std::uint32_t(ind_tbl_handle); }
  static IndirectionTable& of(ibv_rwq_ind_table* table) { return *static_cast<IndirectionTable*>(table); }
};

struct Counters : ibv_counters {
  Counters() : ibv_counters{} {}

  std::uint32_t number = 0;  // the device's
  // Counter that is added to the value at `index`.
  struct Point {
    ibv_counter_description what;
    std::uint32_t index;
  };
  std::mutex mutex;
  std::vector<Point> points;  // protected by `mutex`

  Context& owner() const { return Context::of(context); }
  static Counters& of(ibv_counters* counters) { return *static_cast<Counters*>(counters); }
};

struct Flow : ibv_flow {
  Flow() : ibv_flow{} {}

  const Counters* counters = nullptr;

  Context& owner() const { return Context::of(context); }
  static Flow& of(ibv_flow* flow) { return *static_cast<Flow*>(flow); }
};

// --- Parent and thread domains. `pd` is the PD of an object; it may be nullptr or no parent domain.
DmaMemory allocate_for(Context& context, ibv_pd* pd, MemoryUse use, std::size_t bytes, std::size_t alignment);
DoorbellPage& doorbell_page_for(Context& context, ibv_pd* pd);
bool is_of_one_thread(ibv_pd* pd);
int dealloc_parent_domain(Context& context, Pd& pd);
bool is_imported(ibv_pd& pd);
bool has_objects(const Context& context, const Pd& pd);
bool has_parent_domains(const Context& context, const Pd& pd);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes);

// --- Destroy the device's and the kernel's part of an object. Return 0 or an errno.
int release_mr(Mr& mr);
int release_mw(Mw& mw);
int release_cq(Cq& cq);
int release_srq(Srq& srq);
int release_qp(Qp& qp);
int release_flow(Flow& flow);
int release_counters(Counters& counters);
void leave_groups(Qp& qp);

// --- Memory regions and windows.
ibv_mr* alloc_null_mr(ibv_pd* pd);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sges, std::uint32_t count);
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
// Appends the bind of a type 2 window to the WQE that is being built. Returns 0 or an errno.
int add_binding(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info, provider::WqeBuilder& wqe);
// Sets the window's new rkey, after the bind was posted.
void take_rkey(ibv_mw& mw, std::uint32_t rkey);

// --- Device memory. store_on_device() writes bytes at any offset; other accesses of the CPU are by words.
void store_on_device(DevicePort& port, std::uint64_t offset, const std::uint8_t* from, std::size_t length);
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes);
int free_dm(ibv_dm* dm);

// --- Completion queues.
int create_cq(Context& context, const ibv_cq_init_attr_ex& attributes, Cq*& created);
int poll_cq(ibv_cq* cq, int capacity, ibv_wc* completions);
void declare_looks(CpuTime& cpu);  // declares the functions that only poll
int request_notification(ibv_cq* cq, int solicited_only);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
// Enables the fields that the program asked for (ibv_create_cq_wc_flags).
void fill_extended_poll(Cq& cq, std::uint64_t fields);
ibv_wc_opcode work_completion_opcode(const abi::Cqe& cqe);
unsigned work_completion_flags(const abi::Cqe& cqe);
void attach_user(Cq& cq, Qp& qp);
void forget_completions(Cq& cq, const Qp& qp);
void detach_user(Cq& cq, const Qp& qp);
void attach_user(Cq& cq, Srq& srq);
void detach_user(Cq& cq, const Srq& srq);

// --- Shared receive queues.
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);
int post_srq_receive(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad);
// Completes the receive at `index`: returns its wr_id and frees the entry.
std::uint64_t retire_shared(Srq& srq, std::uint16_t index);

// --- Queue pairs.
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);
// Creates a QP with rings, number and CQs. The objects in `attributes` must have been checked.
int make_qp(Context& context, ibv_qp_init_attr_ex& attributes, std::unique_ptr<Qp>& made);
// Modifies a QP on the device and in the library. The attributes must have been checked.
int change_qp(Qp& qp, const ibv_qp_attr& attributes, int mask);
int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* limit);
bool resolves(const Qp& qp);
int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad);
int post_receive(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad);
bool may_post_send(ibv_qp_state state);
bool has_peer(abi::SendOpcode opcode);  // false: the operation is local to the device
bool may_be_inline(abi::SendOpcode opcode);
abi::DatagramSegment datagram_of(ibv_ah& ah, std::uint32_t remote_qpn, std::uint32_t qkey);
// Appends the segment of a TSO to the WQE that is being built. Returns 0 or an errno.
int add_segmentation(const Qp& qp, const void* headers, std::uint16_t header_bytes, std::uint16_t mss,
                     provider::WqeBuilder& wqe);
// Flags of the control segment for the send flags of a work request.
std::uint32_t control_flags(const Qp& qp, unsigned flags);
// Copies the builder's WQE into the ring and charges the cost. Called with send_lock held.
void put_send(Qp& qp, std::uint64_t wr_id);
// For a QP in ERR: makes the device look for receives that were posted after the move to ERR. If a thread (or the
// caller's own batch) holds the send queue, release_send() does this later.
void flush_unseen_receives(Qp& qp);
void release_send(Qp& qp);
// Announces posted WQEs and charges the cost. Called with send_lock held.
void ring_send(Qp& qp);
// `asked`: IBV_QP_EX_WITH_* flags that the program gave at creation.
void fill_work_request_api(Qp& qp, std::uint64_t asked);

// --- XRC: domains, and the QPs that receive for them.
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attributes);
int close_xrcd(ibv_xrcd* xrcd);
bool resolves(const Context& context, ibv_xrcd* xrcd);
int check_domain_qp(Context& context, const ibv_qp_init_attr_ex& attributes);
int make_domain_qp(Context& context, Qp& qp, ibv_xrcd* xrcd);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes);
int get_srq_number(ibv_srq* srq, std::uint32_t* number);

// --- Work queues.
ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attributes);
int modify_wq(ibv_wq* wq, ibv_wq_attr* attributes);
int destroy_wq(ibv_wq* wq);
bool resolves(const Wq& wq);

// --- Receive-side scaling: tables of work queues, and the QPs through which flows use a table.
ibv_rwq_ind_table* create_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attributes);
int destroy_table(ibv_rwq_ind_table* table);
int check_scaling(const Context& context, const ibv_qp_init_attr_ex& attributes);
int create_scaling(Context& context, const ibv_rx_hash_conf& hash, Qp& qp);
// The kernel does not know these QPs.
bool has_scaling_qps(const Context& context, const ibv_pd& pd);
int modify_scaling(Qp& qp, const ibv_qp_attr& attributes, int mask);
void query_scaling(const Qp& qp, ibv_qp_attr& attributes);

// --- Flows and their counters.
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes);
int destroy_flow(ibv_flow* flow);
ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attributes);
int attach_counters(ibv_counters* counters, ibv_counter_attach_attr* attributes, ibv_flow* flow);
int read_counters(ibv_counters* counters, std::uint64_t* values, std::uint32_t count, std::uint32_t flags);
int destroy_counters(ibv_counters* counters);

// --- Events. names_qp(): the record is an event of QP `number`.
bool names_qp(const abi::EventRecord& record, std::uint32_t number);
// Waits until `completed` (protected by the object's mutex) equals `delivered`: all events are acknowledged. Waits
// through the port and not on the object's condition, since the acknowledging thread may be a software thread of the
// simulator. `function`: name of the program's call, for messages.
void wait_acknowledged(CpuTime& cpu, pthread_mutex_t& mutex, const std::uint32_t& completed, std::uint32_t delivered,
                       const char* function);

}  // namespace rnicsim::verbs
