// SPDX-License-Identifier: Apache-2.0
// The QP engine: one shell around a transport core (model/roce/qp_core.h), in C++ or Verilated. The shell has the
// rings, the contexts, packets that wait for their payload, and the CQEs; the core decides what is sent, placed and
// completed.
//
// Requests and answers of a QP take turns at the transmit units. A turn sends one packet, when a unit is free, the QP
// occupies no unit, and its credit class has room.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/index_table.h"
#include "model/base/inline_function.h"
#include "model/nic/engine/qp.h"
#include "model/nic/engine/send_room.h"
#include "model/nic/engine/tickets.h"
#include "model/nic/engine/transmit_units.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/qp_core.h"

namespace rnicsim::nic {

class EngineShell final : public QpEngine, private roce::CoreActions {
 public:
  EngineShell(const QpLimits& limits, std::unique_ptr<roce::QpCore> core);

  EngineOutputs& outputs() override { return out_; }
  void seed(std::uint64_t seed) override { seed_ = seed; }
  [[gnu::flatten]] void doorbell(SendDoorbell&& doorbell) override;
  void wqe(WqeBytes&& wqe) override;
  [[gnu::flatten]] void wqe_at_hand(Tag tag) override;
  void receives_displaced(Qpn qpn) override;
  void context(ContextFill fill) override;
  void evict(Qpn qpn) override;
  void transmit_free(std::uint32_t unit) override;
  [[gnu::flatten]] void gathered(DmaDone&& done) override;
  [[gnu::flatten]] void scattered(DmaDone&& done) override;
  void checked(KeyDone done) override;
  void atomic_done(AtomicDone done) override;
  void key_changed(KeyDone done) override;
  void srq_taken(SrqTaken taken) override;
  [[gnu::flatten]] void packet(PacketIn&& packet) override;
  void command(QpCommand command) override;
  void timer_expired(Qpn qpn, std::uint32_t kind) override;
  void on_demand() override { on_demand_ = true; }
  void gid_tagged(std::uint16_t index, bool tagged) override;
  void cq_overrun(Qpn qpn) override;
  [[gnu::flatten]] void credit(std::uint8_t credit_class, std::uint32_t packets) override;
  void reset() override;

  EngineTrace& trace() override { return trace_; }
  const EngineCounters& counters() const override { return counters_; }
  void describe_state(std::string& out) const override;
  std::size_t sends_outstanding() const override;

 private:
  enum class Purpose : std::uint8_t {
    send_ring,
    send_wqe,
    receive_ring,
    request_gather,
    answer_gather,
    read_scatter,
    receive_scatter,
    early_scatter,
    access_check,
    receive_presence,
    destination_presence,
    atomic,
    remote_invalidate,
    local_work,
    shared_receive
  };
  struct Expired {
    Qpn qpn;
    roce::Timer timer;
  };
  struct Leaving {
    Qpn qpn;
    std::uint64_t epoch;
    bool is_request;
    roce::Psn end;
    std::uint32_t bytes;
  };
  struct Redeemed {
    Qp* qp = nullptr;
    Purpose purpose{};
    std::uint64_t argument = 0;
  };

  // --- engine_shell.cpp: inputs one at a time, tags, turns, contexts. Inputs of every packet are flattened, since the
  // calls would cost more than the work. Rare paths are kept out of line.
  template <auto take, class Input>
  void step(Input& input);
  template <auto take, class Input>
  [[gnu::noinline]] void defer(Input& input);
  void finish_step();
  [[gnu::noinline]] void follow_up();
  void take_doorbell(const SendDoorbell& doorbell);
  void take_wqe(const WqeBytes& wqe);
  void take_wqe_at_hand(const Tag& tag);
  void take_displacement(const Qpn& qpn);
  void take_context(const ContextFill& fill);
  void take_eviction(const Qpn& qpn);
  void take_unit(const std::uint32_t& number);
  void take_gathered(DmaDone& done);
  void take_scattered(const DmaDone& done);
  void take_checked(const KeyDone& done);
  void take_presence(Qp& qp, Purpose purpose, std::uint64_t message, AccessResult result);
  void take_atomic(const AtomicDone& done);
  void take_key_changed(const KeyDone& done);
  void take_shared(SrqTaken& taken);
  void take_packet(PacketIn& packet);
  void take_command(const QpCommand& command);
  void take_timer(const Expired& timer);
  void take_held_back(const Qpn& qpn);
  void take_overrun(const Qpn& qpn);
  struct Credit {
    std::uint8_t credit_class;
    std::uint32_t packets;
  };
  void take_credit(const Credit& credit);
  void packet_left(std::uint8_t credit_class);
  Duration early_timeout(Qp& qp, bool few) const;
  [[gnu::noinline]] Duration early_or(Qp& qp, Duration own, bool few) const;
  [[gnu::noinline]] bool early_expired(Qp& qp);
  [[gnu::noinline]] void recovered(Qp& qp) const;
  Tag issue(Qp& qp, Purpose purpose, std::uint64_t argument = 0);
  Redeemed redeem(Tag tag);
  Qp* find(Qpn qpn) { return qps_.find(qpn.value); }
  Qp& of(roce::Slot slot) { return *slots_[slot]; }
  // Enqueues a turn if the QP can send after an event: requests, answers or both.
  void schedule_requests(Qp& qp);
  void schedule_answers(Qp& qp);
  void schedule(Qp& qp) {
    schedule_requests(qp);
    schedule_answers(qp);
  }
  bool may_request(Qp& qp) {
    if (!request_waits(qp)) return false;
    const bool unbound = !qp.congestion && qp.context.rate_limit == 0;
    return unbound || !holds_back(qp, next_request_at(qp));
  }
  bool may_answer(Qp& qp);
  [[gnu::noinline]] Duration next_request_at(Qp& qp);
  VlanTag tag_of(const Path& path) const {
    const bool tagged = path.sgid_index < tagged_gids_.size() && tagged_gids_[path.sgid_index];
    return tagged ? VlanTag(static_cast<std::uint16_t>(path.service_level << VlanTag::kPcpShift)) : VlanTag();
  }
  std::uint8_t class_of(const Path& path) const { return limits_.priorities.of(path.traffic_class, tag_of(path)); }
  // Also determines the credit class of the context's path, which each packet needs.
  void set_context(Qp& qp, const QpContext& context) const {
    qp.context = context;
    qp.credit_class = class_of(context.path);
  }
  // The credit class of the next request, which must exist.
  std::uint8_t request_class(Qp& qp) const { return qp.connected() ? qp.credit_class : unconnected_class(qp); }
  [[gnu::noinline]] std::uint8_t unconnected_class(Qp& qp) const;
  [[gnu::noinline]] bool holds_back(Qp& qp, Duration at);
  [[gnu::noinline]] void pace(Qp& qp, const PacketLane::Entry& entry, std::uint32_t payload);

  // --- engine_congestion.cpp: the reaction point, and inputs of the notification point.
  CongestionGate make_gate() const;
  // Gives the QP a control if it has none. False: the NIC has no congestion control.
  bool wake_control(Qp& qp);
  // True if the control gets the event. `rewound`: a control at rest gets it, too, if it counts as a CNP.
  bool control_hears(const Qp& qp, bool rewound) const {
    return qp.congestion || (rewound && control_rests_ && limits_.congestion.cnp_on_retransmit);
  }
  bool echoes_marks() const;
  [[gnu::noinline]] void request_sent(Qp& qp, Packet& packet, std::uint32_t payload, bool again);
  void control_sent(Qp& qp, std::uint32_t bytes);
  [[gnu::noinline]] void control_left(Qp& qp, const Leaving& packet);
  [[gnu::noinline]] void control_heard(Qp& qp, const roce::ResponseOutcome& outcome, roce::Psn oldest,
                                       const Packet& packet);
  [[gnu::noinline]] void control_timed_out(Qp& qp, bool rewound);
  void control_rewound(Qp& qp);
  void tell_control(Qp& qp);
  [[gnu::noinline]] void take_notification(Qp& qp, const PacketIn& packet);
  [[gnu::noinline]] void tell_congestion(const Qp& qp, const PacketIn& packet, CongestionSeen::Cause cause);
  [[gnu::noinline]] void keep_telemetry(Qp& qp, const PacketIn& packet, const Telemetry& telemetry) const;
  [[gnu::noinline]] void give_back_telemetry(Qp& qp, Packet& answer) const;
  // Acknowledgements of READ responses.
  static ReadAcks& read_acks(Qp& qp);
  [[gnu::noinline]] bool response_allowed(Qp& qp);
  [[gnu::noinline]] void response_sent(Qp& qp, PacketLane::Entry& entry, std::uint32_t payload);
  [[gnu::noinline]] void responses_lost(Qp& qp);
  [[gnu::noinline]] void acknowledge_response(Qp& qp, roce::Psn oldest);
  void take_read_acknowledgement(Qp& qp, const PacketIn& packet);

  [[gnu::flatten]] void dispatch();
  void serve(const TransmitUnits::Turn& turn, std::uint32_t unit);
  [[gnu::noinline]] void give_up_contexts();
  void give_up(Qp& qp, const roce::CoreState& state);
  void emit_ready(Qp& qp, PacketLane& lane);
  std::uint32_t drop(PacketLane& lane, std::uint64_t sequence = 0);
  [[gnu::noinline]] void read_ring(Qp& qp, QueueKind queue, const RingRead& read);
  [[gnu::noinline]] void set_state(Qp& qp, roce::QpState state);

  // --- Actions of the core; sends in engine_send.cpp, answers in engine_receive.cpp and engine_answers.cpp.
  void begin_step() override { busy_ = true; }
  void end_step() override;
  void moved(roce::Slot slot, bool answers) override;
  void posted(roce::Slot slot, std::uint64_t message, roce::Psn first, std::uint32_t packets) override;
  void responded(roce::Slot slot, const roce::ResponseOutcome& outcome, roce::Psn oldest) override;
  void ack_timed_out(roce::Slot slot, bool rewound) override;
  void completed(roce::Slot slot, std::uint64_t message, roce::Status status, bool placed_last) override;
  void local_work(roce::Slot slot, std::uint64_t message) override;
  void drained(roce::Slot slot) override;
  void arm(roce::Slot slot, roce::Timer timer, std::uint8_t code, bool few) override;
  void cancel(roce::Slot slot, roce::Timer timer) override;
  std::optional<bool> granted(roce::Slot slot, const roce::Verdict& wanted) override;
  void validated(roce::Slot slot, const roce::Verdict& verdict) override;
  void start_atomic(roce::Slot slot, roce::AnswerId pending_answer, roce::Psn psn, const roce::AtomicEth& operation,
                    bool is_swap, std::uint32_t domain) override;
  void invalidate(roce::Slot slot, roce::AnswerId pending_answer, roce::Rkey key) override;
  void receive_completed(roce::Slot slot, roce::AnswerId pending_answer) override;
  void placement_failed(roce::Slot slot, const roce::PlacementFailure& failure) override;
  void told(roce::Slot slot, const roce::CoreState& state) override;

  // --- engine_commands.cpp
  void execute(const QpCommand& command);
  void create(const QpCommand& command);
  void modify(Qp& qp, const QpCommand& command, bool draining);
  void enter(Qp& qp, roce::QpState from, roce::QpState to);
  Qp& restart_qp(Qp& qp);
  void ask(Qp& qp, Qp::Question question);
  QpContext context_of(const Qp& qp, const roce::CoreState& state) const;
  void finish(const QpCommand& command, CommandStatus status, QpSyndrome syndrome, const QpContext& context);

  // --- engine_send.cpp: the requester's side.
  void fetch_sends(Qp& qp);
  void sends_fetched(Qp& qp, const WqeBytes& wqe);
  void parse_sends(Qp& qp);
  void take_send(Qp& qp, const SendRules& rules);
  bool request_waits(Qp& qp);
  [[gnu::noinline]] bool awaits_read(Qp& qp, const SendWqe& wqe);
  [[gnu::noinline]] void payload_read();
  [[gnu::noinline]] void ignore_doorbell(const Qp& qp, Refusal::Why why);
  [[gnu::noinline]] bool destination_present(Qp& qp, SendWqe& wqe);
  TransmitWork send_request(Qp& qp, std::uint8_t credit_class);
  void request_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done);
  void take_response(Qp& qp, PacketIn& packet);
  [[gnu::noinline]] void answered_otherwise(Qp& qp, const roce::ResponseOutcome& outcome, roce::Psn oldest,
                                            const Packet& packet);
  void complete_send(Qp& qp, roce::Status status, bool behind_payload);
  [[gnu::noinline]] void drop_requests(Qp& qp);
  [[gnu::noinline]] void fail_sends(Qp& qp);  // UC and UD: enters the SQE state and flushes

  // --- engine_receive.cpp: the responder's side, requests in.
  void take_request(Qp& qp, PacketIn& packet);
  void pump_inbound(Qp& qp);
  roce::Offer offer_of(const Qp& qp, const PacketIn& packet) const;
  void want_receive(Qp& qp);
  [[gnu::noinline]] void want_queue(Qp& qp);
  roce::Offer::Receive held_receive(const Qp& qp, const roce::OpcodeInfo& row) const;
  [[gnu::noinline]] void look_for_memory(Qp& qp);
  void ask_for_access(Qp& qp, Tag tag, const roce::Verdict& wanted);
  void carry_verdict(Qp& qp, const PacketIn& packet, const roce::Verdict& verdict);
  void place(Qp& qp, const PacketIn& packet, const roce::Verdict& verdict);
  [[gnu::noinline]] void reject(Qp& qp, const roce::Verdict& verdict);
  void count_request(const PacketIn& packet, const roce::Verdict& verdict);
  [[gnu::noinline]] void count_drop(const roce::Verdict& verdict);
  void complete_receive(Qp& qp, const PacketIn& last, const roce::Verdict& verdict);

  // --- engine_early.cpp: requests that arrive before missing ones.
  bool may_keep() const { return early_waiting_ < limits_.transport.reorder_buffer.bytes; }
  [[gnu::noinline]] void keep_early(Qp& qp, PacketIn&& packet, const roce::Verdict& verdict);
  bool placed_early(const Qp& qp) const;
  [[gnu::noinline]] void settle_early(Qp& qp, const PacketIn& packet, const roce::Verdict& verdict);
  [[gnu::noinline]] void early_payload_placed(Qp& qp, roce::Psn psn, AccessResult result);

  // --- engine_answers.cpp: the responder's side, answers out.
  void payload_placed(Qp& qp, std::uint64_t argument, AccessResult result);
  void tell_placed(const Qp& qp, const AnswerAt& at) const;
  void key_invalidated(Qp& qp, roce::AnswerId pending_answer, AccessResult result);
  [[gnu::noinline]] void fail_receive(Qp& qp, roce::AnswerId pending_answer, roce::Status status);
  bool answer_waits(const Qp& qp) const;
  TransmitWork send_answer(Qp& qp, std::uint8_t credit_class);
  bool may_read(const Qp& qp, std::uint32_t bytes) const;
  void read_answers(Qp& qp);
  void answer_gathered(Qp& qp, std::uint64_t argument, DmaDone& done);
  [[gnu::noinline]] void move_nak(Qp& qp, const PacketRef& dropped, roce::Psn psn);
  CqeWrite receive_error(const Qp& qp, std::uint16_t index, roce::Status status) const;
  CqeWrite receive_error(const Qp& qp, const Qp::PendingCqe& pending_answer, roce::Status status) const;

  // --- engine_shared.cpp: receives of a shared queue.
  void ask_for_shared(Qp& qp, bool looks = false);
  [[gnu::noinline]] void queue_known(Qp& qp, const SrqTaken& taken);
  void give_back(const Qp& qp, std::uint16_t index);
  [[gnu::noinline]] void give_back_held(Qp& qp);
  void give_back_all(Qp& qp);
  void flush_shared(Qp& qp);

  // --- engine_queues.cpp: the receive ring, and flushing.
  [[gnu::noinline]] void look_for_receives(Qp& qp);
  [[gnu::noinline]] void receives_fetched(Qp& qp, const WqeBytes& wqes);
  void receives_settled(Qp& qp);
  [[gnu::noinline]] void fail(Qp& qp);  // enters the error state and flushes
  void flush_receives(Qp& qp);
  void flush_receive(CqeWrite&& write);
  void count_receive_error(roce::Status status);

  const QpLimits limits_;
  const std::unique_ptr<roce::QpCore> core_;
  const bool ecn_forced_;
  const bool echoes_marks_;
  const bool control_rests_;  // a queue pair has no control until its first notification
  const AdaptiveTimeouts adaptive_;
  const bool has_early_timeouts_;
  const bool keeps_early_;
  const bool begins_again_;  // go-back-0: a message that lost a packet is sent again from its first packet
  const bool acks_reads_;    // READ responses request acknowledgements
  EngineOutputs out_;
  EngineTrace trace_;
  std::uint64_t early_waiting_ = 0;  // bytes of kept packets that cannot be placed yet
  IndexTable<Qp> qps_;
  std::vector<Qp*> slots_;  // by slot in the core
  std::uint64_t births_ = 0;
  std::uint64_t seed_ = 1;
  Tickets<Purpose> tickets_;
  Fifo<InlineFunction<void()>> inputs_;  // inputs that came during another input
  bool busy_ = false;
  bool on_demand_ = false;
  std::vector<bool> tagged_gids_;  // by GID index; GIDs beyond the end have no tag
  Tag checking_ = 0;               // tag of the check that may be answered during the
                                   // call; 0: none
  bool granted_ = false;           // answer of that check
  bool checked_later_ = false;     // the check is not answered yet: validated() will be
                                   // called
  TransmitUnits units_;
  std::uint64_t evictions_ = 0;
  std::vector<Qpn> to_give_up_;  // evicted QPs that may have become idle
  // Packets that were sent out and have not left the port, by credit class.
  std::array<Fifo<Leaving>, kCreditClasses> leaving_;
  SendRoom room_;                    // room for packets that had their turn and have not
                                     // left
  std::uint32_t request_reads_ = 0;  // payloads of requests on their way from memory
  Fifo<Qpn> reads_awaited_;          // QPs that wait to begin such a read
  EngineCounters counters_;
};

}  // namespace rnicsim::nic
