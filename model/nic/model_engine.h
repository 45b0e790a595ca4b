// The behavioural QP engine: drives the transport core (model/roce) over the QpEngine seam.
//
// A QP's requests and answers take turns at its transmit unit, a packet a turn, when the unit is free and as long as
// there are packet credits.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/index_table.h"
#include "model/base/inline_function.h"
#include "model/nic/qp.h"
#include "model/nic/qp_engine.h"
#include "model/nic/tickets.h"
#include "model/nic/transmit_units.h"

namespace rnicsim::nic {

class ModelEngine : public QpEngine {
 public:
  explicit ModelEngine(const QpLimits& limits) : limits_(limits), units_(limits.transmit_units) {}

  EngineOutputs& outputs() override { return out_; }
  void doorbell(SendDoorbell doorbell) override;
  void wqe(WqeBytes wqe) override;
  void wqe_at_hand(Tag tag) override;
  void context(ContextFill fill) override;
  void evict(Qpn qpn) override;
  void transmit_free(std::uint32_t unit) override;
  void gathered(DmaDone done) override;
  void scattered(DmaDone done) override;
  void checked(KeyDone done) override;
  void atomic_done(AtomicDone done) override;
  void key_changed(KeyDone done) override;
  void srq_taken(SrqTaken taken) override;
  void packet(PacketIn packet) override;
  void command(QpCommand command) override;
  void timer_expired(Qpn qpn, std::uint32_t kind) override;
  void cq_overrun(Qpn qpn) override;
  void credit(std::uint32_t packets) override;
  void reset() override;

  EngineTrace& trace() override { return trace_; }
  const EngineCounters& counters() const override { return counters_; }
  void describe_state(std::string& out) const override;
  std::size_t sends_outstanding() const override;

 private:
  enum Timer : std::uint32_t { ack = 0, rnr = 1 };
  enum class Purpose : std::uint8_t {
    send_ring,
    send_wqe,
    receive_ring,
    request_gather,
    answer_gather,
    read_scatter,
    receive_scatter,
    access_check,
    atomic,
    remote_invalidate,
    local_work,
    shared_receive
  };
  struct Expired {
    Qpn qpn;
    std::uint32_t kind;
  };
  struct Redeemed {
    Qp* qp = nullptr;
    Purpose purpose{};
    std::uint64_t argument = 0;
  };

  // --- model_engine.cpp: inputs one at a time, tags, turns.
  template <auto take, class Input>
  void step(Input& input);
  void take_doorbell(const SendDoorbell& doorbell);
  void take_wqe(const WqeBytes& wqe);
  void take_wqe_at_hand(const Tag& tag);
  void take_context(const ContextFill& fill);
  void take_eviction(const Qpn& qpn);
  void take_unit(const std::uint32_t& number);
  void take_gathered(DmaDone& done);
  void take_scattered(const DmaDone& done);
  void take_checked(const KeyDone& done);
  void take_atomic(const AtomicDone& done);
  void take_key_changed(const KeyDone& done);
  void take_shared(SrqTaken& taken);
  void take_packet(PacketIn& packet);
  void take_command(const QpCommand& command);
  void take_timer(const Expired& timer);
  void take_overrun(const Qpn& qpn);
  void take_credit(const std::uint32_t& packets);
  Tag issue(Qp& qp, Purpose purpose, std::uint64_t argument = 0);
  Redeemed redeem(Tag tag);
  Qp* find(Qpn qpn);
  void schedule(Qp& qp);
  void dispatch();
  bool serve(const TransmitUnits::Turn& turn, std::uint32_t unit);
  void give_up_contexts();
  void emit_ready(Qp& qp, PacketLane& lane);
  void read_ring(Qp& qp, QueueKind queue, const RingRead& read);
  void set_state(Qp& qp, roce::QpState state);

  // --- engine_commands.cpp
  void execute(const QpCommand& command);
  QpSyndrome create(const QpCommand& command);
  QpSyndrome modify(Qp& qp, const QpCommand& command);
  void enter(Qp& qp, roce::QpState from, roce::QpState to);
  void rebirth(Qp& qp);
  abi::Qpc snapshot(const Qp& qp) const;
  void finish(const QpCommand& command, abi::CommandStatus status, QpSyndrome syndrome, const abi::Qpc& context);

  // --- engine_send.cpp: the requester's side.
  void fetch_sends(Qp& qp);
  void sends_fetched(Qp& qp, const WqeBytes& wqe);
  void parse_sends(Qp& qp);
  void post(Qp& qp, ParsedSend&& send);
  bool request_waits(const Qp& qp) const;
  bool next_wqe_at_hand(Qp& qp);
  std::optional<TransmitWork> send_request(Qp& qp);
  void request_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done);
  void take_response(Qp& qp, PacketIn& packet);
  void read_placed(Qp& qp, std::uint64_t message, AccessResult result);
  void start_local_work(Qp& qp);
  void retire(Qp& qp, bool behind_payload);
  void complete_send(Qp& qp, const roce::Completion& completion, bool behind_payload);
  void drop_requests(Qp& qp);
  void packet_left();
  void fail_sends(Qp& qp);               // of UC and UD: to the SQE state, and flush
  void keep_ack_timer(Qp& qp, bool restart);
  void announce_drained(Qp& qp);

  // --- engine_receive.cpp: the responder's side, requests in.
  void take_request(Qp& qp, PacketIn&& packet);
  void pump_inbound(Qp& qp);
  bool act(Qp& qp, PacketIn& packet, const roce::Verdict& verdict);
  void fill_offer(Qp& qp, const roce::OpcodeInfo& row);
  void place(Qp& qp, PacketIn& packet, const roce::Verdict& verdict);
  void count_drop(const roce::Verdict& verdict);
  void tell_placed(Qpn qpn, const Response& response) const;
  void complete_receive(Qp& qp, Response& response, const roce::Verdict& verdict, const PacketIn& last);
  void reject(Qp& qp, const roce::Verdict& verdict);
  CqeWrite receive_error(const Qp& qp, std::uint16_t index, roce::Status status) const;

  // --- engine_answers.cpp: the responder's side, answers out.
  void owe_again(Qp& qp, Response response);
  void owe_read(Qp& qp, const roce::Verdict& verdict);
  void owe_atomic(Qp& qp, const roce::Verdict& verdict);
  void start_atomics(Qp& qp);
  void atomic_carried_out(Qp& qp, std::uint64_t sequence, const AtomicDone& done);
  void settle_responses(Qp& qp);
  void key_invalidated(Qp& qp, std::uint64_t sequence, AccessResult result);
  void forget_receive(Qp& qp, std::uint16_t index);
  void fail_placement(Qp& qp);
  void fail_silently(Qp& qp);
  bool answer_waits(const Qp& qp) const;
  TransmitWork send_answer(Qp& qp);
  TransmitWork send_read_packet(Qp& qp);
  void answer_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done);
  PacketLane::Entry& put_answer(Qp& qp, roce::Opcode opcode, roce::Psn psn, std::uint8_t syndrome, std::uint32_t msn);

  // --- engine_shared.cpp: receives of a shared queue.
  void ask_for_shared(Qp& qp);
  void give_back(const Qp& qp, std::uint16_t index);
  void give_back_held(Qp& qp);
  void give_back_all(Qp& qp);
  void flush_shared(Qp& qp);

  // --- engine_queues.cpp: the receive ring, and flushing.
  void look_for_receives(Qp& qp);
  void receives_fetched(Qp& qp, const WqeBytes& wqes);
  void receives_settled(Qp& qp);
  void fail(Qp& qp);                     // to the error state, and flush
  void flush_sends(Qp& qp);
  void flush_receives(Qp& qp);
  void flush_receive(Qp& qp, std::uint16_t index);

  const QpLimits limits_;
  EngineOutputs out_;
  EngineTrace trace_;
  IndexTable<Qp> qps_;
  std::uint64_t births_ = 0;
  Tickets<Purpose> tickets_;
  Fifo<InlineFunction<void()>> inputs_;                         // those that came while one was executed
  bool busy_ = false;
  TransmitUnits units_;
  std::uint64_t evictions_ = 0;
  std::vector<Qpn> to_give_up_;                                 // evicted; something that needed their context is done
  struct Leaving {
    Qpn qpn;
    std::uint64_t epoch;
    std::optional<roce::Psn> request_end;
  };
  Fifo<Leaving> leaving_;                                       // packets that were put out and have not left the port
  std::uint32_t credits_ = 0;
  EngineCounters counters_;
};

}  // namespace rnicsim::nic
