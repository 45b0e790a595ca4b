// What processes write to their UAR pages: what is not theirs is refused.
#pragma once

#include <cstdint>

#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

struct DoorbellCounters {
  Counter send_doorbells = 0;
  Counter blueflame_doorbells = 0;
  Counter cq_arms = 0;
  Counter eq_doorbells = 0;
  Counter doorbell_wrong_page = 0;
  Counter doorbell_malformed = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("send_doorbells", send_doorbells, "writes", "send doorbells without a WQE");
    visit.counter("blueflame_doorbells", blueflame_doorbells, "writes", "send doorbells that carried the WQE");
    visit.counter("cq_arms", cq_arms, "writes", "completion queues armed");
    visit.counter("eq_doorbells", eq_doorbells, "writes", "event queues consumed and armed");
    visit.counter("doorbell_wrong_page", doorbell_wrong_page, "writes",
                  "dropped: the QP or CQ is not of that UAR page");
    visit.counter("doorbell_malformed", doorbell_malformed, "writes",
                  "dropped: no doorbell at that offset or of that size");
  }
};

struct DoorbellRung {
  std::uint32_t page;
  Qpn qpn;
  std::uint16_t producer;
  std::uint32_t wqe_bytes;               // 0: the WQE must be fetched
};

struct CqArmed {
  std::uint32_t cqn;
  bool solicited_only;
  std::uint32_t consumer;
};
struct EqConsumed {
  std::uint32_t eqn;
  std::uint32_t consumer;
};

struct DoorbellRefused {
  enum class Kind : std::uint8_t { send, blueflame, cq_arm, unknown };
  enum class Reason : std::uint8_t { wrong_page, malformed };
  std::uint32_t page;
  Kind kind;
  Reason reason;
};

class Doorbell {
 public:
  Doorbell(const Personality& personality, ContextCache& contexts) : personality_(personality), contexts_(contexts) {}

  Output<SendDoorbell> send;
  Output<CqArmed> cq_armed;
  Output<EqConsumed> eq_consumed;
  // As they arrive; an arm of a CQ that is not of its page is told twice.
  trace::Point<DoorbellRung> rung;
  trace::Point<CqArmed> armed;
  trace::Point<EqConsumed> consumed;
  trace::Point<DoorbellRefused> refused;

  void write(const UarWrite& write);

  const DoorbellCounters& counters() const { return counters_; }

 private:
  using Refused = DoorbellRefused;

  void arm(std::uint32_t page, const CqArmed& arm);
  void consume(const EqConsumed& eq);
  void ring(std::uint32_t page, SendDoorbell&& doorbell);
  void refuse(std::uint32_t page, Refused::Kind kind, Refused::Reason reason);

  const Personality& personality_;
  ContextCache& contexts_;
  DoorbellCounters counters_;
};

}  // namespace rnicsim::nic
