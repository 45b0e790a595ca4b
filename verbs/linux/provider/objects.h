// SPDX-License-Identifier: Apache-2.0
// Verbs objects of the provider. Each begins with the library's struct that libibverbs and programs use.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "verbs/linux/provider/mapping.h"
#include "verbs/linux/provider/private_interface.h"
#include "verbs/provider/completion_ring.h"
#include "verbs/provider/receive_ring.h"
#include "verbs/provider/send_ring.h"
#include "verbs/provider/shared_receive_ring.h"
#include "verbs/provider/uar.h"
#include "verbs/provider/wqe_builder.h"

namespace rnicsim::linux_provider {

// Lock of a queue. Without effect if the program declared that a single thread uses the queue.
class QueueLock {
 public:
  explicit QueueLock(bool needed = true) : needed_(needed) { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
  ~QueueLock() { pthread_spin_destroy(&lock_); }
  QueueLock(const QueueLock&) = delete;
  QueueLock& operator=(const QueueLock&) = delete;

  void lock() {
    if (needed_) pthread_spin_lock(&lock_);
  }
  bool try_lock() { return !needed_ || pthread_spin_trylock(&lock_) == 0; }
  void unlock() {
    if (needed_) pthread_spin_unlock(&lock_);
  }

 private:
  pthread_spinlock_t lock_;
  bool needed_;
};
using QueueGuard = std::lock_guard<QueueLock>;

struct Context {
  Context(int command_file, const rnic_alloc_ucontext_resp& answer);

  int command_file;
  std::uint64_t features;
  Mapping page;
  provider::Uar uar;

  bool has_feature(std::uint64_t feature) const { return (features & feature) != 0; }
  static Context& of(ibv_context* context);
};

struct Ah : ibv_ah {
  abi::AddressVector path;

  static Ah& of(ibv_ah* ah) { return *static_cast<Ah*>(ah); }
};

struct Qp;

struct Cq : verbs_cq {
  explicit Cq(bool one_thread) : verbs_cq{}, lock(!one_thread) {}

  std::uint32_t number = 0;
  Mapping memory;
  Mapping record;
  provider::CompletionRing ring;
  QueueLock lock;                                // protects `ring` and `users`
  std::unordered_map<std::uint32_t, Qp*> users;  // QPs by number
  Qp* last_user = nullptr;
  abi::Cqe current;  // the CQE that the extended poll reads
  // Notification that the program requested since it took the last event of this CQ.
  enum class Notification : std::uint8_t { none, solicited, any };
  Notification asked_for = Notification::none;
  // told_at: the consumer index when the program took the last event. seen_when_asked: the index behind the last CQE
  // when the program last requested a notification.
  static constexpr std::uint32_t kNeverTold = ~0u;
  std::uint32_t told_at = kNeverTold;
  std::uint32_t seen_when_asked = 0;

  Context& owner() { return Context::of(cq.context); }
  static Cq& of(ibv_cq* cq) { return *static_cast<Cq*>(reinterpret_cast<verbs_cq*>(cq)); }
  static Cq& of(ibv_cq_ex* cq) { return *static_cast<Cq*>(reinterpret_cast<verbs_cq*>(cq)); }
};

struct Srq : verbs_srq {
  Srq() : verbs_srq{} {}

  Mapping memory;
  provider::SharedReceiveRing ring;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  QueueLock lock;  // lock order: after the lock of a CQ

  static Srq& of(ibv_srq* srq) { return *static_cast<Srq*>(reinterpret_cast<verbs_srq*>(srq)); }
};

inline constexpr std::uint32_t kMaxSegmentBytes = 0x7fffffff;  // per segment; the length's top bit means inline

// A bind of a type 2 window in a batch that may still be aborted.
struct Binding {
  ibv_mw* window;
  std::uint32_t rkey;
};

// State of the ibv_wr_* interface between wr_start and wr_complete.
struct Batch {
  provider::SendRing::Mark start;
  int error = 0;  // the first error; no WQE of the batch is executed then
  bool building = false;
  bool takes_inline = false;
  bool has_data = false;     // the WQE's only data setter was called
  bool has_address = false;  // UD: wr_set_ud_addr was called
  std::uint64_t wr_id = 0;
  std::vector<Binding> bindings;
};

struct Qp : verbs_qp {
  Qp() : verbs_qp{} {}

  ibv_qp_cap capabilities{};
  bool signal_all = false;
  std::uint64_t operations = 0;            // IBV_QP_EX_WITH_*: operations of the transport that the device supports
  std::atomic<bool> failed{false};         // an error CQE or an event reported that the device moved the QP to ERR
  std::atomic<bool> posted_unseen{false};  // receives posted since the device last had to read the doorbell record
  Mapping send_memory;
  Mapping receive_memory;
  std::optional<provider::SendRing> send;  // absent if max_send_wr is 0; `receive` likewise
  std::optional<provider::ReceiveRing> receive;
  provider::WqeBuilder builder;  // protected by send_lock
  Batch batch;
  QueueLock send_lock;
  QueueLock receive_lock;

  Context& owner() { return Context::of(qp.context); }
  Srq* shared() { return qp.srq != nullptr ? &Srq::of(qp.srq) : nullptr; }
  bool does(std::uint64_t operation) const { return (operations & operation) != 0; }
  static Qp& of(ibv_qp* qp) { return *static_cast<Qp*>(reinterpret_cast<verbs_qp*>(qp)); }
  static Qp& of(ibv_qp_ex* qp) { return *static_cast<Qp*>(reinterpret_cast<verbs_qp*>(qp)); }
};

// Boundary to C: no exception may pass. `body` returns 0 or a positive errno.
template <class Body>
int guarded(Body&& body) {
  try {
    const int error = std::forward<Body>(body)();
    if (error != 0) errno = error;
    return error;
  } catch (const std::bad_alloc&) {
    return errno = ENOMEM;
  }
}

// --- cq.cpp
ibv_cq* create_cq(ibv_context*, int entries, ibv_comp_channel*, int vector);
ibv_cq_ex* create_cq_ex(ibv_context*, ibv_cq_init_attr_ex*);
int resize_cq(ibv_cq*, int entries);
int modify_cq(ibv_cq*, ibv_modify_cq_attr*);
int destroy_cq(ibv_cq*);
int request_notification(ibv_cq*, int solicited_only);
void take_completion_event(ibv_cq*);
void attach_user(Cq&, Qp&);
void forget_completions(Cq&, Qp&);
void detach_user(Cq&, Qp&);

// --- poll.cpp
int poll_cq(ibv_cq*, int capacity, ibv_wc*);
void fill_extended_poll(Cq&, std::uint64_t fields);

// --- qp.cpp
ibv_qp* create_qp(ibv_pd*, ibv_qp_init_attr*);
ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex*);
int modify_qp(ibv_qp*, ibv_qp_attr*, int mask);
int query_qp(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
int destroy_qp(ibv_qp*);
void take_event(ibv_context*, ibv_async_event*);

// --- post_send.cpp
int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
bool may_post_send(ibv_qp_state);
std::uint32_t control_flags(const Qp&, unsigned flags);
abi::DatagramSegment datagram_of(ibv_ah&, std::uint32_t remote_qpn, std::uint32_t qkey);
bool may_be_inline(abi::SendOpcode);
// Called with send_lock held; releases the lock.
void finish_sending(Qp&);

// --- mw.cpp
ibv_mw* alloc_mw(ibv_pd*, ibv_mw_type);
int dealloc_mw(ibv_mw*);
int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*);
// Appends the bind of a type 2 window to the WQE that is being built. Returns 0 or an errno.
int add_binding(ibv_mw*, std::uint32_t rkey, const ibv_mw_bind_info&, provider::WqeBuilder&);
// Sets the window's new rkey, after the bind was posted.
void take_rkey(ibv_mw&, std::uint32_t rkey);

// --- wr_api.cpp
void fill_work_request_api(Qp&);

// --- post_receive.cpp
int post_receive(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
int post_srq_receive(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
void flush_unseen_receives(Qp&);

// --- srq.cpp
ibv_srq* create_srq(ibv_pd*, ibv_srq_init_attr*);
int modify_srq(ibv_srq*, ibv_srq_attr*, int mask);
int query_srq(ibv_srq*, ibv_srq_attr*);
int destroy_srq(ibv_srq*);
std::uint64_t retire_shared(Srq&, std::uint16_t index);

// --- ah.cpp
ibv_ah* create_ah(ibv_pd*, ibv_ah_attr*);
int destroy_ah(ibv_ah*);

}  // namespace rnicsim::linux_provider
