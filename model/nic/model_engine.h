// The behavioural QP engine: drives the transport core (model/roce) over the QpEngine seam.
//
// The scheduler serves the (QP, direction) lanes of each transmit unit round robin, a packet a turn, when the unit is free
// and as long as there are packet credits.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/base/index_table.h"
#include "model/base/inline_function.h"
#include "model/nic/qp.h"
#include "model/nic/qp_engine.h"

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
  void checked(DmaDone done) override;
  void atomic_done(AtomicDone done) override;
  void invalidated(DmaDone done) override;
  void packet(PacketIn packet) override;
  void command(QpCommand command) override;
  void timer_expired(Qpn qpn, std::uint32_t kind) override;
  void cq_overrun(Qpn qpn) override;
  void credit(std::uint32_t packets) override;
  void reset() override;

  EngineTrace& trace() override { return trace_; }
  const EngineCounters& counters() const override { return counters_; }
  void describe_state(std::string& out) const override;

 private:
  enum Timer : std::uint32_t { ack = 0, rnr = 1 };
  enum class Purpose : std::uint8_t {
    send_wqes, send_wqe, receive_record, receive_wqes, request_gather, answer_gather, read_scatter, receive_scatter,
    access_check, atomic, remote_invalidate, local_invalidate
  };
  // What an answer to a tag is for.
  struct Ticket {
    Purpose purpose;
    Qpn qpn;
    std::uint64_t epoch = 0;
    std::uint64_t argument = 0;
    std::uint32_t generation = 0;
    bool open = false;
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

  // --- model_engine.cpp: inputs one at a time, tags, the scheduler.
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
  void take_checked(const DmaDone& done);
  void take_atomic(const AtomicDone& done);
  void take_invalidated(const DmaDone& done);
  void take_packet(PacketIn& packet);
  void take_command(const QpCommand& command);
  void take_timer(const Expired& timer);
  void take_overrun(const Qpn& qpn);
  void take_credit(const std::uint32_t& packets);
  Tag issue(Qp& qp, Purpose purpose, std::uint64_t argument = 0);
  Redeemed redeem(Tag tag);
  Qp* find(Qpn qpn);
  void schedule(Qp& qp);
  void enqueue(Qp& qp, Lane& lane);
  void note_servable(std::uint32_t unit);
  void dispatch();
  bool serve(std::uint32_t unit);
  void give_up_contexts();
  void emit_ready(Qp& qp, Lane& lane);
  void drop_lane_from(Lane& lane, std::uint64_t sequence);
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
  std::uint64_t ring_address(const Qp& qp, std::uint16_t block) const;
  std::optional<TransmitWork> send_request(Qp& qp);
  void request_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done);
  void take_response(Qp& qp, PacketIn& packet);
  void read_placed(Qp& qp, std::uint64_t message, AccessResult result);
  void start_local_work(Qp& qp);
  void retire(Qp& qp, bool behind_payload);
  void complete_send(Qp& qp, const roce::Completion& completion, bool behind_payload);
  void drop_requests(Qp& qp);
  void packet_left();
  void keep_ack_timer(Qp& qp, bool restart);
  void announce_drained(Qp& qp);

  // --- engine_receive.cpp: the responder's side, requests in.
  void take_request(Qp& qp, PacketIn&& packet);
  void pump_inbound(Qp& qp);
  bool act(Qp& qp, PacketIn& packet, const roce::Verdict& verdict);
  void fill_offer(Qp& qp, const roce::OpcodeInfo& row);
  void place(Qp& qp, PacketIn& packet, const roce::Verdict& verdict);
  void tell_placed(Qpn qpn, const Response& response) const;
  void complete_receive(Qp& qp, Response& response, const roce::Verdict& verdict);
  void reject(Qp& qp, const roce::Verdict& verdict);
  CqeWrite receive_cqe(const Qp& qp, std::uint16_t index, abi::CqeOpcode opcode) const;
  CqeWrite receive_error(const Qp& qp, std::uint16_t index, roce::Status status) const;

  // --- engine_answers.cpp: the responder's side, answers out.
  void owe_again(Qp& qp, Response response);
  void owe_read(Qp& qp, const roce::Verdict& verdict);
  void owe_atomic(Qp& qp, const roce::Verdict& verdict);
  void start_atomics(Qp& qp);
  void atomic_carried_out(Qp& qp, std::uint64_t sequence, const AtomicDone& done);
  void settle_responses(Qp& qp);
  void key_invalidated(Qp& qp, std::uint64_t sequence, AccessResult result);
  void fail_placement(Qp& qp);
  bool answer_waits(const Qp& qp) const;
  TransmitWork send_answer(Qp& qp);
  TransmitWork send_read_packet(Qp& qp);
  void answer_gathered(Qp& qp, std::uint64_t sequence, DmaDone& done);
  void put_answer(Qp& qp, roce::Opcode opcode, roce::Psn psn, std::uint8_t syndrome, std::uint32_t msn);

  // --- engine_queues.cpp: the receive ring, and flushing.
  void look_for_receives(Qp& qp);
  void fetch_receives(Qp& qp);
  void receive_record(Qp& qp, const WqeBytes& record);
  void receives_fetched(Qp& qp, const WqeBytes& wqes);
  void receives_settled(Qp& qp);
  void take_receive(Qp& qp);
  void replenish_receives(Qp& qp);
  void fail(Qp& qp);                     // to the error state, and flush
  void flush_sends(Qp& qp);
  void flush_receives(Qp& qp);
  void flush_receive(Qp& qp, std::uint16_t index);

  const QpLimits limits_;
  EngineOutputs out_;
  EngineTrace trace_;
  IndexTable<Qp> qps_;
  std::uint64_t births_ = 0;
  std::vector<Ticket> tickets_;
  std::vector<std::uint32_t> free_tickets_;
  Fifo<InlineFunction<void()>> inputs_;                         // those that came while one was executed
  bool busy_ = false;
  struct Turn {
    Qpn qpn;
    std::uint64_t epoch = 0;
    bool answers = false;
  };
  struct Unit {
    Fifo<Turn> turns;
    bool busy = false;
    bool asked = false;                                         // when it will be free
  };
  std::vector<Unit> units_;
  std::uint64_t servable_ = 0;                                  // a bit a unit: something waits, and it was not asked
  std::uint32_t next_unit_ = 0;
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
