// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/engine_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/base/kernel.h"
#include "model/roce/qp_state.h"

namespace rnicsim::sim::replay {
namespace {

using namespace rnicsim::literals;

constexpr std::uint32_t kCredits = 16;
constexpr std::uint32_t kPd = 1;
constexpr Pasid kPasid = 1;
constexpr std::uint8_t kOnlyPort = 1;  // kPort is an attribute mask, not the number
// Longer than any immediate reaction of an engine, and shorter than the shortest timer of the transport.
constexpr Duration kAtOnce = 5_us;

// Attributes that a transition takes, beside the state.
struct Step {
  roce::QpState to;
  std::uint32_t attributes;
};
struct Way {
  roce::Transport transport;
  Step steps[3];
};
constexpr Way kWays[] = {
    {roce::Transport::rc,
     {{roce::QpState::init, roce::attr::kAccess},
      {roce::QpState::rtr, roce::attr::kPath | roce::attr::kPathMtu | roce::attr::kRemoteQpn | roce::attr::kReceivePsn |
                               roce::attr::kMaxDestRdAtomic | roce::attr::kMinRnrTimer},
      {roce::QpState::rts, roce::attr::kTimeout | roce::attr::kRetryCount | roce::attr::kRnrRetry |
                               roce::attr::kSendPsn | roce::attr::kMaxRdAtomic}}},
    {roce::Transport::uc,
     {{roce::QpState::init, roce::attr::kAccess},
      {roce::QpState::rtr, roce::attr::kPath | roce::attr::kPathMtu | roce::attr::kRemoteQpn | roce::attr::kReceivePsn},
      {roce::QpState::rts, roce::attr::kSendPsn}}},
    {roce::Transport::ud,
     {{roce::QpState::init, roce::attr::kQkey}, {roce::QpState::rtr, 0}, {roce::QpState::rts, roce::attr::kSendPsn}}},
};

const Way& way_of(roce::Transport transport) {
  for (const auto& way : kWays)
    if (way.transport == transport) return way;
  return kWays[0];
}

}  // namespace

nic::QpContext plain_context() {
  nic::QpContext context;
  context.pd = kPd;
  context.pasid = kPasid;
  context.port = kOnlyPort;
  return context;
}

EngineHost::EngineHost(nic::QpEngine& engine, std::uint8_t rd_atomic, const Engines* made_by)
    : engine_(engine), rd_atomic_(rd_atomic), made_by_(made_by) {
  bind();
}

// Requests of the engine during an input are answered after the input has returned.
void EngineHost::bind() {
  auto& out = engine_.outputs();
  out.transmit.bind([](nic::TransmitWork) {});
  out.transmit_wanted.bind([this](std::uint32_t unit) { side_->transmit_wanted(unit); });
  out.context_write_back.bind([](nic::ContextWriteBack) {});
  out.packet.bind([this](const nic::PacketOut& packet) {
    side_->packet(packet);
    later([this, credit_class = packet.credit_class] { engine_.credit(credit_class, 1); });
  });
  out.command_done.bind([this](nic::QpCommandDone done) { command_done_ = done; });
  out.wqe_held.bind([](nic::WqeHeld) {});
  out.wqe_needed.bind([this](nic::WqeNeeded needed) { later([this, tag = needed.tag] { engine_.wqe_at_hand(tag); }); });
  out.wqe_retired.bind([this](const nic::WqeRetired& retired) { side_->sent(retired); });
  out.cqe.bind([this](const nic::CqeWrite& cqe) { side_->received(cqe); });
  out.event.bind([](nic::EventOut) {});
  out.timer.bind([this](nic::TimerArm arm) { side_->timer(arm); });
  bind_requests();
}

void EngineHost::bind_requests() {
  auto& out = engine_.outputs();
  out.wqe_fetch.bind([this](nic::WqeFetch request) { later([this, request] { engine_.wqe(side_->fetch(request)); }); });
  out.gather.bind(
      [this](const nic::Gather& request) { later([this, request] { engine_.gathered(side_->gather(request)); }); });
  out.scatter.bind([this](const nic::Scatter& request) {
    later([this, request] { engine_.scattered({request.tag, side_->scatter(request), {}}); });
  });
  out.access_check.bind([this](nic::AccessCheck request) {
    later([this, request] { engine_.checked({request.tag, side_->check(request)}); });
  });
  out.atomic.bind(
      [this](nic::Atomic request) { later([this, request] { engine_.atomic_done(side_->atomic(request)); }); });
  out.invalidate.bind([this](nic::Invalidate request) {
    later([this, tag = request.tag] { engine_.key_changed({tag, nic::AccessResult::ok}); });
  });
  out.bind_window.bind([this](nic::BindWindow request) {
    later([this, tag = request.tag] { engine_.key_changed({tag, nic::AccessResult::ok}); });
  });
  out.fast_register.bind([this](nic::FastRegister request) {
    later([this, tag = request.tag] { engine_.key_changed({tag, nic::AccessResult::ok}); });
  });
  out.srq_take.bind([this](nic::SrqTake take) {
    later([this, take] { engine_.srq_taken({.tag = take.tag, .qpn = take.qpn, .srqn = take.srqn}); });
  });
  out.srq_give_back.bind([](nic::SrqGiveBack) {});
}

void EngineHost::begin(HostSide& side) {
  if (side_ == nullptr) sc_core::sc_start(sc_core::SC_ZERO_TIME);  // elaborates the model
  side_ = &side;
  pending_.clear();
  engine_.reset();
  for (std::uint8_t credit_class = 0; credit_class < nic::kCreditClasses; ++credit_class)
    engine_.credit(credit_class, kCredits);
  settle();
}

void EngineHost::connect(nic::Qpn qpn, nic::QpContext context) {
  using namespace roce::attr;
  context.max_rd_atomic = context.max_dest_rd_atomic = rd_atomic_;
  command(qpn, context, nic::QpCommand::Kind::create, roce::QpState::reset, 0);
  for (const auto& [to, attributes] : way_of(context.transport).steps) {
    const auto always = to == roce::QpState::init ? kState | kPkeyIndex | kPort : kState;
    command(qpn, context, nic::QpCommand::Kind::modify, to, always | attributes);
  }
}

void EngineHost::command(nic::Qpn qpn, const nic::QpContext& given, nic::QpCommand::Kind kind, roce::QpState to,
                         std::uint32_t attributes) {
  auto context = given;
  context.state = to;
  command_done_.reset();
  engine_.command({.tag = next_tag_++,
                   .kind = kind,
                   .qpn = qpn,
                   .context = context,
                   .attributes = attributes,
                   .current = std::nullopt});
  settle();
  if (command_done_ && command_done_->status == nic::CommandStatus::ok) return;
  throw std::runtime_error(fmt::format("the engine refused a command on QP {:#08x}: status {:#x}, syndrome {:#x}",
                                       qpn.value, command_done_ ? static_cast<unsigned>(command_done_->status) : 0,
                                       command_done_ ? command_done_->syndrome : 0));
}

void EngineHost::answer_all() {
  while (!pending_.empty()) {
    const auto answer = std::move(pending_.front());
    pending_.pop_front();
    answer();
  }
  if (made_by_ != nullptr) made_by_->check();
}

void EngineHost::settle() {
  for (;;) {
    answer_all();
    if (!sc_core::sc_pending_activity() || sc_core::sc_time_to_pending_activity() > to_sc_time(kAtOnce)) return;
    sc_core::sc_start(sc_core::sc_time_to_pending_activity());
  }
}

bool EngineHost::keeps_time() const { return sc_core::sc_pending_activity(); }

void EngineHost::pass(Duration time) {
  const auto end = now() + time;
  for (settle(); now() < end; settle()) {
    const auto rest = to_sc_time(end - now());
    sc_core::sc_start(sc_core::sc_pending_activity() ? std::min(rest, sc_core::sc_time_to_pending_activity()) : rest);
  }
}

}  // namespace rnicsim::sim::replay
