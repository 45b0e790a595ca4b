// SPDX-License-Identifier: Apache-2.0
// Writes of processes to their UAR pages; a doorbell for an object of another page is refused.
#pragma once

#include <cstdint>

#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/queues/doorbell_counters.h"
#include "model/nic/seam/qp_engine.h"
#include "model/nic/seam/refusal.h"

namespace rnicsim::nic {

struct DoorbellRung {
  std::uint32_t page;
  Qpn qpn;
  std::uint16_t producer;
  std::uint32_t wqe_bytes;  // 0: the WQE must be fetched
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

// Address of a doorbell, and the queue number in it.
struct DoorbellPlace {
  std::uint32_t page;
  std::uint32_t offset;
  std::uint32_t number;
};

class Doorbell {
 public:
  Doorbell(const Personality& personality, ContextCache& contexts) : personality_(personality), contexts_(contexts) {}

  Output<SendDoorbell> send;
  Output<CqArmed> cq_armed;
  Output<EqConsumed> eq_consumed;
  // At arrival; an arm for a CQ of another page is also reported as refused.
  trace::Point<DoorbellRung> rung;
  trace::Point<CqArmed> armed;
  trace::Point<EqConsumed> consumed;
  trace::Point<DoorbellRefused> refused;
  trace::Point<Refusal> refusal;  // as `refused`, and for event queues that do not exist

  void write(const UarWrite& write);

  const DoorbellCounters& counters() const { return counters_; }

 private:
  using Refused = DoorbellRefused;

  void arm(const DoorbellPlace& place, const CqArmed& arm);
  void consume(const DoorbellPlace& place, const EqConsumed& eq);
  void ring(const DoorbellPlace& place, SendDoorbell&& doorbell);
  void refuse(const DoorbellPlace& place, Refused::Kind kind, Refused::Reason reason, Refusal::What what,
              Refusal::Why why);
  void tell(const DoorbellPlace& place, Refusal::What what, Refusal::Why why);

  const Personality& personality_;
  ContextCache& contexts_;
  DoorbellCounters counters_;
};

}  // namespace rnicsim::nic
