// The QP engine in RTL, behind the QpEngine seam: a shell that runs its clock as long as there is something to do,
// keeps the rings, payload and contexts of which the RTL has no part, and translates.
//
// A context is given up when nothing of its queue pair is under way, not before: the RTL's timers need none of the
// seam's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/base/agenda.h"
#include "model/base/fifo.h"
#include "model/base/index_table.h"
#include "model/nic/capability_params.h"
#include "model/nic/qp_context.h"
#include "model/nic/tickets.h"
#include "model/nic/transmit_units.h"
#include "rtl/cosim/input_queues.h"
#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/rtl_qp.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {

struct RtlOptions {
  bool lockstep = false;                 // the transport core as referee beside it
  std::string waves;                     // FST file of its signals; empty: none
  Duration clock{4'000};                 // period
  std::function<void(const std::string&)> mismatch;  // lockstep: called once, with the histories of both
};

class RtlEngine : public nic::QpEngine {
 public:
  RtlEngine(const nic::QpLimits& limits, const RtlOptions& options);

  nic::EngineOutputs& outputs() override { return out_; }
  nic::EngineTrace& trace() override { return trace_; }
  const nic::EngineCounters& counters() const override { return counters_; }
  void describe_state(std::string& out) const override;
  std::size_t sends_outstanding() const override;

  void doorbell(nic::SendDoorbell doorbell) override;
  void wqe(nic::WqeBytes wqe) override;
  void wqe_at_hand(nic::Tag tag) override;
  void context(nic::ContextFill fill) override;
  void evict(nic::Qpn qpn) override;
  void transmit_free(std::uint32_t unit) override;
  void gathered(nic::DmaDone done) override;
  void scattered(nic::DmaDone done) override;
  void checked(nic::KeyDone done) override;
  void atomic_done(nic::AtomicDone done) override;
  void key_changed(nic::KeyDone done) override;
  void srq_taken(nic::SrqTaken taken) override;
  void packet(nic::PacketIn packet) override;
  void command(nic::QpCommand command) override;
  void timer_expired(nic::Qpn qpn, std::uint32_t kind) override;
  void cq_overrun(nic::Qpn qpn) override;
  void credit(std::uint32_t packets) override;
  void reset() override;


 private:
  enum class Purpose : std::uint8_t {
    send_ring,
    send_wqe,
    receive_ring,
    request_gather,
    answer_gather,
    read_scatter,
    receive_scatter,
    access_check,
    atomic
  };
  struct Redeemed {
    RtlQp* qp = nullptr;
    Purpose purpose{};
    std::uint64_t argument = 0;
  };
  // Of the RTL's 256 places.
  struct Slot {
    std::optional<nic::Qpn> qpn;
    // Commands under way, before which what the RTL tells of the slot is void.
    std::uint32_t send_void = 0;
    std::uint32_t answer_void = 0;
    bool taken() const { return qpn || send_void != 0 || answer_void != 0; }
  };
  // What both sides know of a queue pair, asked of them by command.
  struct Snapshot {
    nic::Qpn qpn;
    std::uint64_t epoch = 0;
    SendRecord send;
    AnswerRecord answer;
    int parts = 0;                       // that are here
    std::function<void(RtlQp&, const Snapshot&)> then;
  };
  struct Fed {
    nic::PacketIn packet;
    nic::Qpn qpn;
    std::uint64_t epoch = 0;
  };
  struct Leaving {
    nic::Qpn qpn;
    std::uint64_t epoch = 0;
    bool is_request = false;
    roce::Psn end;
  };

  // --- rtl_engine.cpp: inputs one at a time, the clock, tags, transmit units, contexts.
  void step(std::function<void()> input);
  void arm_clock();
  void cycle();
  template <class Input>
  void feed(const Input& input) {
    queues_.push(input);
  }
  RtlQp* find(nic::Qpn qpn) { return qps_.find(qpn.value); }
  RtlQp* of_slot(std::uint8_t slot) { return slots_[slot].qpn ? find(*slots_[slot].qpn) : nullptr; }
  nic::Tag issue(RtlQp& qp, Purpose purpose, std::uint64_t argument = 0);
  Redeemed redeem(nic::Tag tag);
  void read_ring(RtlQp& qp, nic::QueueKind queue, const nic::RingRead& read);
  void schedule(RtlQp& qp);
  void dispatch();
  bool serve(const nic::TransmitUnits::Turn& turn, std::uint32_t unit);
  void emit_ready(RtlQp& qp, bool is_request);
  void take_context(const nic::ContextFill& fill);
  void take_credit(std::uint32_t packets);
  void give_up(RtlQp& qp);
  void set_state(RtlQp& qp, roce::QpState state);

  // --- rtl_engine_commands.cpp
  void execute(const nic::QpCommand& command);
  nic::QpSyndrome create(const nic::QpCommand& command);
  void modify(RtlQp& qp, const nic::QpCommand& command, bool draining);
  void enter(RtlQp& qp, roce::QpState from, roce::QpState to);
  void rebirth(RtlQp& qp);
  void ask(RtlQp& qp, std::function<void(RtlQp&, const Snapshot&)> then);
  template <class Record>
  void told(Fifo<std::shared_ptr<Snapshot>>& asked, Record Snapshot::*part, const Record& record);
  abi::Qpc context_of(const RtlQp& qp, const Snapshot& snapshot) const;
  void finish(const nic::QpCommand& command, abi::CommandStatus status, nic::QpSyndrome syndrome,
              const abi::Qpc& context);

  // --- rtl_engine_send.cpp
  void take_doorbell(const nic::SendDoorbell& doorbell);
  void fetch_sends(RtlQp& qp);
  void sends_fetched(RtlQp& qp, const nic::WqeBytes& wqe);
  void parse_sends(RtlQp& qp);
  void post_parsed(RtlQp& qp);
  bool request_waits(RtlQp& qp);
  nic::TransmitWork send_request(RtlQp& qp);
  void request_gathered(RtlQp& qp, std::uint64_t sequence, nic::DmaDone& done);
  void void_requests(RtlQp& qp);
  void take(const SendRecord& record);
  void take_response(RtlQp& qp, const SendRecord& record, nic::PacketIn& packet);
  void take_posted(RtlQp& qp, const SendRecord& record);
  void complete_send(RtlQp& qp, const SendRecord& record);

  // --- rtl_engine_answers.cpp
  void take_packet(nic::PacketIn& packet);
  void pump_inbound(RtlQp& qp);
  Request request_of(const RtlQp& qp) const;
  void take(const AnswerRecord& record);
  void judged(RtlQp& qp, const AnswerRecord& record);
  void place(RtlQp& qp, nic::PacketIn& packet, const AnswerRecord& record);
  void reject(RtlQp& qp, const AnswerRecord& record);
  void tell_placed(RtlQp& qp, std::uint8_t owed);
  void complete_receive(RtlQp& qp, const AnswerRecord& record);
  void placement_failed(RtlQp& qp, const AnswerRecord& record);
  bool answer_waits(const RtlQp& qp) const;
  nic::TransmitWork send_answer(RtlQp& qp);
  void answer_gathered(RtlQp& qp, std::uint64_t sequence, nic::DmaDone& done);

  // --- rtl_engine_queues.cpp: the receive ring, and flushing.
  void look_for_receives(RtlQp& qp);
  void receives_fetched(RtlQp& qp, const nic::WqeBytes& wqes);
  void receives_settled(RtlQp& qp);
  void fail(RtlQp& qp);
  void flush_receives(RtlQp& qp);
  void flush_receive(RtlQp& qp, std::uint16_t index);

  const nic::QpLimits limits_;
  const RtlOptions options_;
  nic::EngineOutputs out_;
  nic::EngineTrace trace_;
  nic::EngineCounters counters_;
  VerilatedEngine rtl_;
  std::unique_ptr<Lockstep> referee_;
  InputQueues queues_;
  Alarm clock_{[this] { cycle(); }};
  IndexTable<RtlQp> qps_;
  std::array<Slot, kSlots> slots_;
  std::uint64_t births_ = 0;
  nic::Tickets<Purpose> tickets_;
  Fifo<std::function<void()>> inputs_;   // those that came while one was executed
  bool busy_ = false;
  nic::TransmitUnits units_;
  std::uint32_t credits_ = 0;
  Fifo<Leaving> leaving_;                // packets that were put out and have not left the port
  Fifo<Fed> responses_;                  // that the RTL has not judged
  Fifo<std::shared_ptr<Snapshot>> asked_of_sends_, asked_of_answers_;
  bool behind_payload_ = false;          // what the RTL completes now was placed right before
};

std::unique_ptr<nic::QpEngine> make_rtl_engine(const nic::QpLimits& limits, const RtlOptions& options);
// What the RTL can do, of what is asked: fewer QPs, fewer READs in flight, no invalidation.
void limit_to_rtl(nic::CapabilityParams& capabilities);

}  // namespace rnicsim::rtl
