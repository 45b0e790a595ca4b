// The objects of a context. Each begins with the struct that programs see, so a program's pointer is the object's.
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
#include "verbs/ibverbs/dma_memory.h"
#include "verbs/port/event_pipe.h"
#include "verbs/ibverbs/queue_lock.h"
#include "verbs/provider/completion_ring.h"
#include "verbs/provider/receive_ring.h"
#include "verbs/provider/send_ring.h"
#include "verbs/provider/shared_receive_ring.h"
#include "verbs/provider/wqe_builder.h"

namespace rnicsim::verbs {

// The objects of one thread: queue pairs with a doorbell page of their own, CQs without a lock.
struct Td : ibv_td {
  std::uint32_t number = 0;
  DoorbellPage* page = nullptr;  // none when the kernel had no more

  static Td& of(ibv_td* td) { return *static_cast<Td*>(td); }
};

struct Pd : ibv_pd {
  std::atomic<std::uint32_t> address_handles{0};  // of which the kernel knows nothing
  // Of a parent domain.
  struct Parent {
    std::uint32_t number = 0;
    Pd* protection = nullptr;
    Td* thread = nullptr;
    Allocator allocator;
  };
  std::optional<Parent> parent;
  std::uint32_t import = 0;  // not 0: the kernel's PD is another's, too

  static Pd& of(ibv_pd* pd) { return *static_cast<Pd*>(pd); }
};

struct Mr : ibv_mr {
  bool null = false;        // no memory of the program's
  bool on_device = false;   // but the device's own: `bus_address` is an offset there
  bool pinned = false;
  bool writable = false;    // for the device
  std::uint64_t bus_address = 0;
  std::uint32_t import = 0; // not 0: the kernel's region is another's, too
  unsigned access = 0;
  std::uint64_t start = 0;  // the first address that a work request may name

  bool on_demand() const { return access & IBV_ACCESS_ON_DEMAND; }
  static Mr& of(ibv_mr* mr) { return *static_cast<Mr*>(mr); }
};

// Knows the whole way: a datagram's WQE takes the vector as it is.
struct Ah : ibv_ah {
  abi::AddressVector path;

  static Ah& of(ibv_ah* ah) { return *static_cast<Ah*>(ah); }
  static const Ah& of(const ibv_ah* ah) { return *static_cast<const Ah*>(ah); }
};

struct Mw : ibv_mw {
  static Mw& of(ibv_mw* mw) { return *static_cast<Mw*>(mw); }
};

// Memory of the device; its handle is its offset there.
struct Dm : ibv_dm {
  explicit Dm(DevicePort& carrier) : ibv_dm{}, port(carrier) {}

  DevicePort& port;          // of the process that has it: a forked child allocates for itself
  std::uint64_t length = 0;
  std::uint32_t import = 0;  // not 0: the kernel's range is another's, too

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
  QueueLock lock;                              // of the ring, of `users` and of `shared`
  std::unordered_map<std::uint32_t, Qp*> users;  // QPs by number
  std::unordered_map<std::uint32_t, Srq*> shared;  // XRC SRQs that complete here, by number
  Qp* last_user = nullptr;
  abi::Cqe current;                            // of the extended poll
  bool single_threaded = false;
  ibv_pd* parent_domain = nullptr;
  // What the program asked to be notified of since it last took an event of this CQ.
  enum class Notification : std::uint8_t { none, solicited, any };
  std::atomic<Notification> asked_for{Notification::none};
  // The consumer index when the program took the last event; and one past the CQEs that lay in the CQ when the program
  // last asked to be notified.
  static constexpr std::uint32_t kNeverTold = ~0u;
  std::atomic<std::uint32_t> told_at{kNeverTold};
  std::uint32_t seen_when_asked = 0;
  std::uint32_t completions_delivered = 0;     // under the registry's mutex, until the CQ is taken from it
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(context); }
  ibv_cq* handle_of() { return ibv_cq_ex_to_cq(this); }
  static Cq& of(ibv_cq* cq) { return *static_cast<Cq*>(reinterpret_cast<ibv_cq_ex*>(cq)); }
  static Cq& of(ibv_cq_ex* cq) { return *static_cast<Cq*>(cq); }
};

// An XRC domain, as often as it is open.
struct Xrcd : ibv_xrcd {
  std::uint32_t handle = 0;
  std::uint32_t number = 0;  // the kernel's

  static Xrcd& of(ibv_xrcd* xrcd) { return *static_cast<Xrcd*>(xrcd); }
};

struct Srq : ibv_srq {
  Srq() : ibv_srq{} {}

  DmaMemory memory;
  DmaMemory record;
  provider::SharedReceiveRing ring;            // under `lock`, as what a program may post of it
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  QueueLock lock;                              // taken behind that of a CQ
  const Xrcd* xrcd = nullptr;                  // of an XRC one,
  Cq* cq = nullptr;                            // and where its receives complete
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(context); }
  static Srq& of(ibv_srq* srq) { return *static_cast<Srq*>(srq); }
};

inline constexpr std::uint32_t kMaxSegmentBytes = 0x7fffffff;  // of one data segment: the top bit says inline

// A batch of the ibv_wr_* interface, between wr_start and wr_complete.
struct Batch {
  provider::SendRing::Mark start;
  int error = 0;       // the first; nothing of the batch is executed then
  bool building = false;
  bool takes_inline = false;  // the WQE that is being built
  bool has_data = false;      // its one setter was called
  bool wants_address = false; // UD: wr_set_ud_addr is to be called, XRC: wr_set_xrc_srqn
  bool has_address = false;   // and was
  std::uint64_t wr_id = 0;
};

// A bind of type 2 in a batch, which may still be given up.
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
  std::uint64_t operations = 0; // IBV_QP_EX_WITH_*: what its transport has and the device can do
  std::uint64_t known_operations = 0;  // what the device can do on some transport
  bool extended = false;        // ibv_wr_* may be used
  const Xrcd* xrcd = nullptr;   // not nullptr: it receives for that domain, and has no queue and no CQ
  const IndirectionTable* table = nullptr;  // not nullptr: it has no queues of its own, and the device knows no QP
  std::uint32_t create_flags = 0;    // IBV_QP_CREATE_*
  std::uint32_t source_qpn = 0;      // with IBV_QP_CREATE_SOURCE_QPN
  std::uint32_t max_tso_header = 0;  // 0: no TSO
  std::uint8_t port_number = 0; // since INIT
  std::atomic<bool> failed{false};  // an error CQE or an event told that the device moved it to ERR
  std::atomic<bool> posted_unseen{false};  // receives, since the device was last made to look for them
  DmaMemory send_memory;
  DmaMemory receive_memory;
  DmaMemory record;
  DoorbellPage* page = nullptr;
  std::optional<provider::SendRing> send;  // absent when its max_*_wr is 0
  std::optional<provider::ReceiveRing> receive;
  QueueLock send_lock;
  QueueLock receive_lock;
  provider::WqeBuilder builder{0};  // under send_lock
  Batch batch;                      // under send_lock
  std::vector<Binding> bindings;    // under send_lock: of the batch
  abi::Milestone posting;           // under send_lock: what the next doorbell announces, when that is followed
  std::mutex groups_mutex;
  boost::container::flat_set<std::array<std::uint8_t, 16>> groups;  // multicast, to which it is attached
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(qp_base.context); }
  bool does(ibv_qp_create_send_ops_flags operation) const { return operations & operation; }
  bool knows(ibv_qp_create_send_ops_flags operation) const { return known_operations & operation; }
  Srq* shared() const { return qp_base.srq != nullptr ? &Srq::of(qp_base.srq) : nullptr; }
  bool of_xrc() const { return qp_base.qp_type == IBV_QPT_XRC_SEND || xrcd != nullptr; }
  // The device's, of a QP or of what scales receiving.
  std::uint32_t number() const { return qp_base.qp_num; }
  static Qp& of(ibv_qp* qp) { return *static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
  static Qp& of(ibv_qp_ex* qp) { return *static_cast<Qp*>(qp); }
};

// A receive queue by itself: to the device a raw packet QP that has no other.
struct Wq : ibv_wq {
  Wq() : ibv_wq{} {}

  std::unique_ptr<Qp> queue;
  bool strips = false;  // tags, as far as the device knows
  std::uint32_t events_delivered = 0;

  Context& owner() const { return Context::of(context); }
  static Wq& of(ibv_wq* wq) { return *static_cast<Wq*>(wq); }
};

// Which work queue gets what; the device hears of it when a QP is made of it.
struct IndirectionTable : ibv_rwq_ind_table {
  IndirectionTable() : ibv_rwq_ind_table{} {}

  std::vector<Wq*> queues;  // one may be there often

  std::uint32_t number() const { return std::uint32_t(ind_tbl_handle); }
  static IndirectionTable& of(ibv_rwq_ind_table* table) { return *static_cast<IndirectionTable*>(table); }
};

struct Counters : ibv_counters {
  Counters() : ibv_counters{} {}

  std::uint32_t number = 0;  // the device's
  // What is told where.
  struct Point {
    ibv_counter_description what;
    std::uint32_t index;
  };
  std::mutex mutex;
  std::vector<Point> points;  // under `mutex`

  Context& owner() const { return Context::of(context); }
  static Counters& of(ibv_counters* counters) { return *static_cast<Counters*>(counters); }
};

struct Flow : ibv_flow {
  Flow() : ibv_flow{} {}

  const Counters* counters = nullptr;

  Context& owner() const { return Context::of(context); }
  static Flow& of(ibv_flow* flow) { return *static_cast<Flow*>(flow); }
};

// --- Parent and thread domains. For an object of this PD, which may be nullptr or no parent domain.
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

// --- The device's and the kernel's part of an object's end; 0 or errno.
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
// Of a bind of type 2, into the WQE that is being built: 0 or errno.
int add_binding(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info, provider::WqeBuilder& wqe);
// Such a bind is posted: the window carries its new key from now on, as one of type 1 does.
void take_rkey(ibv_mw& mw, std::uint32_t rkey);

// --- Device memory. Any bytes of it, where a completion brought some; else the CPU reaches it by words.
void store_on_device(DevicePort& port, std::uint64_t offset, const std::uint8_t* from, std::size_t length);
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes);
int free_dm(ibv_dm* dm);

// --- Completion queues.
int create_cq(Context& context, const ibv_cq_init_attr_ex& attributes, Cq*& created);
int poll_cq(ibv_cq* cq, int capacity, ibv_wc* completions);
void declare_looks(CpuTime& cpu);  // the functions that only poll
int request_notification(ibv_cq* cq, int solicited_only);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
// Of the fields, those that were asked for (ibv_create_cq_wc_flags) can be read.
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
// The receive at `index` is done: gives its wr_id, frees the entry.
std::uint64_t retire_shared(Srq& srq, std::uint16_t index);

// --- Queue pairs.
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);
// With its memory, its number and its place at its CQs; `attributes` name objects that were looked at.
int make_qp(Context& context, ibv_qp_init_attr_ex& attributes, std::unique_ptr<Qp>& made);
// The device's part and the library's, of a change that may be asked for.
int change_qp(Qp& qp, const ibv_qp_attr& attributes, int mask);
int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* limit);
bool resolves(const Qp& qp);
int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad);
int post_receive(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad);
bool may_post_send(ibv_qp_state state);
bool has_peer(abi::SendOpcode opcode);  // else the work is the device's own
bool may_be_inline(abi::SendOpcode opcode);
abi::DatagramSegment datagram_of(ibv_ah& ah, std::uint32_t remote_qpn, std::uint32_t qkey);
// Of a TSO, into the WQE that is being built: 0 or errno.
int add_segmentation(const Qp& qp, const void* headers, std::uint16_t header_bytes, std::uint16_t mss,
                     provider::WqeBuilder& wqe);
// The control segment's, of those of a work request.
std::uint32_t control_flags(const Qp& qp, unsigned flags);
// The builder's WQE into the ring, and its cost; under send_lock.
void put_send(Qp& qp, std::uint64_t wr_id);
// Of a QP known to be in ERR: it may have been there before these were posted, and looks for them once more. Who has
// the send queue, perhaps the caller with a batch of its own, does it when it lets go.
void flush_unseen_receives(Qp& qp);
void release_send(Qp& qp);
// Announces what was posted and charges for it; under send_lock.
void ring_send(Qp& qp);
// `asked`: IBV_QP_EX_WITH_*, as the program gave them when it made the queue pair.
void fill_work_request_api(Qp& qp, std::uint64_t asked);

// --- XRC: domains, and the queue pairs that receive for them.
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

// --- Receive-side scaling: tables of work queues, and the QPs by which flows name them.
ibv_rwq_ind_table* create_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attributes);
int destroy_table(ibv_rwq_ind_table* table);
int check_scaling(const Context& context, const ibv_qp_init_attr_ex& attributes);
int create_scaling(Context& context, const ibv_rx_hash_conf& hash, Qp& qp);
// Of which, too, the kernel knows no QP.
bool has_scaling_qps(const Context& context, const ibv_pd& pd);
int modify_scaling(Qp& qp, const ibv_qp_attr& attributes, int mask);
void query_scaling(const Qp& qp, ibv_qp_attr& attributes);

// --- Flows and what counts them.
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes);
int destroy_flow(ibv_flow* flow);
ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attributes);
int attach_counters(ibv_counters* counters, ibv_counter_attach_attr* attributes, ibv_flow* flow);
int read_counters(ibv_counters* counters, std::uint64_t* values, std::uint32_t count, std::uint32_t flags);
int destroy_counters(ibv_counters* counters);

// --- Events: whether it is of a QP, and of that one.
bool names_qp(const abi::EventRecord& record, std::uint32_t number);
// Waits until `completed` (under the object's mutex) says that all `delivered` events were acknowledged. The thread
// waits through the port, not on the object's condition: the thread that acknowledges may be one of the simulator's
// own. `function`, for people, is what the program called.
void wait_acknowledged(CpuTime& cpu, pthread_mutex_t& mutex, const std::uint32_t& completed, std::uint32_t delivered,
                       const char* function);

}  // namespace rnicsim::verbs
