// SPDX-License-Identifier: Apache-2.0
#include "model/nic/parts.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "model/nic/engine/qp_context.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kQueuedBytes = 320;  // payload bytes before the port, for each packet that may be there

QpLimits limits_of(const NicParams& params, const Personality& personality) {
  const auto& caps = params.capabilities;
  return {.max_mtu = static_cast<std::uint8_t>(caps.max_mtu),
          .max_rd_atomic = static_cast<std::uint8_t>(caps.max_rd_atomic),
          .max_message = caps.max_message,
          .max_inline_receive = std::min(caps.max_inline_receive, personality.layout.inline_receive),
          .invalidate = caps.invalidate,
          .windows = caps.windows,
          .fast_register = caps.fast_register,
          .atomic_write = caps.atomic_write,
          .uc = caps.uc,
          .ud = caps.ud,
          .source_qpn = caps.source_qpn,
          .raw = caps.raw,
          .max_frame = caps.max_frame,
          .max_tso = caps.max_tso,
          .max_tso_header = CapabilityParams::kMostTsoHeader,
          .max_rate_limit = caps.max_rate_limit,
          .srq = caps.srq,
          .xrc = caps.features().xrc,
          .transmit_units = params.units.transmit_units,
          .queue_bytes = params.tx.queue_packets * kQueuedBytes,
          .sends_ahead = params.send_wqes.ahead,
          .receives_ahead = params.receive_wqes.ahead,
          .payload_reads = params.units.payload_reads,
          .read_ahead = static_cast<std::uint32_t>(params.units.read_ahead.bytes),
          .read_piece = static_cast<std::uint32_t>(params.units.read_piece.bytes),
          .adaptive_timeout = params.adaptive_timeout,
          .adaptive_retransmission = params.adaptive_retransmission,
          .transport = params.transport,
          .congestion = params.congestion,
          .priorities = params.port.priorities(),
          .line = params.port.rate,
          .line_overhead = static_cast<std::uint32_t>(params.port.overhead.bytes),
          .receive_latency = params.rx.latency,
          .personality = &personality};
}

CapabilityParams capabilities_of(const NicParams& params, const Personality& personality) {
  auto caps = params.capabilities;
  const auto most = std::uint64_t{personality.layout.pci.most_device_memory};
  caps.device_memory = static_cast<std::uint32_t>(std::min(params.device_memory.size.bytes, most));
  return caps;
}

// The serial number is the EUI-64 of the port's MAC address.
FunctionFacts function_facts(const NicParams& params) {
  const auto mac = params.capabilities.mac;
  return {.link_generation = params.dma.link.generation,
          .link_lanes = params.dma.link.lanes,
          .max_payload = params.dma.link.max_payload.bytes,
          .serial_number = mac >> 24 << 40 | std::uint64_t{0xfffe} << 24 | (mac & 0xffffff)};
}

std::unique_ptr<QpEngine> engine_of(const NicParams& params, const EngineFactory& make_engine,
                                    const Personality& personality) {
  auto engine = make_engine(limits_of(params, personality));
  if (params.jitter.delay == Duration{}) return engine;
  return std::make_unique<JitteredEngine>(params.jitter, std::move(engine));
}

// Called when the frame has arrived, not when it was handed over.
bool take_room(ReceiveBuffer& buffer, FrameIn& came) {
  auto hold = buffer.take(came.frame);
  if (hold) came.hold = std::move(*hold);
  return hold.has_value();
}

}  // namespace

NicParts::NicParts(const NicParams& params, const EngineFactory& make_engine, const Personality& personality)
    : params_(params),
      capabilities_(capabilities_of(params, personality)),
      gids_(params.capabilities.gids),
      groups_(params.capabilities.multicast_limits()),
      flows_(params.capabilities.flow_limits()),
      scaling_(params.capabilities.max_rss),
      receive_buffer(params.receive_buffer, params.port.priorities(), params.port.rate),
      pcie("pcie", params.pcie, capabilities_.features(), personality, function_facts(params)),
      dma_unit("dma", params.dma),
      device_memory(params.device_memory, personality.layout.pci.most_device_memory),
      payload_memory(dma_unit, device_memory),
      contexts(personality, dma_unit, pcie, params.contexts),
      qp_contexts(contexts),
      translation_cache("atc", params.atc, dma_unit),
      translation("translation", params.translation, contexts, translation_cache),
      windows(contexts),
      gather_scatter(translation, payload_memory, params.timing_only),
      atomic_unit("atomics", params.atomics, translation, payload_memory),
      wqe_fetch(params.receive_wqes, dma_unit),
      events(personality, contexts, dma_unit, pcie),
      shared_receives(personality, contexts, dma_unit, events),
      completion("completion", personality, contexts, dma_unit, events, pcie),
      doorbell(personality, contexts),
      command_unit(personality, capabilities_, contexts, windows, gids_, groups_, flows_, scaling_, dma_unit, events,
                   pcie),
      timers("timers"),
      units("units", params.units, qp_contexts),
      send_wqes(params.send_wqes, params.units.transmit_units, personality.layout.send_block(), dma_unit),
      engine_(engine_of(params, make_engine, personality)),
      notification(params.congestion.np, params.port.priorities()),
      tx(params.tx, gids_, groups_, flows_, params.icrc_rule()),
      steering("steering", params.rx.latency, flows_),
      rx("rx", params.rx, gids_, groups_, params.icrc_rule()),
      raw(params.raw, flows_, scaling_),
      port("port", params.port),
      loopback("loopback", params.loopback) {
  wire_host();
  wire_engine();
  wire_network();
  grant_credits();
}

void NicParts::grant_credits() {
  for (std::uint8_t credit_class = 0; credit_class < kCreditClasses; ++credit_class)
    engine_->credit(credit_class, params_.tx.queue_packets);
}

void NicParts::wire_host() {
  dma_unit.reach(pcie);
  pcie.reach(device_memory);
  atomic_unit.physical = [this](Pasid pasid, std::uint64_t address) { return pcie.translate(pasid, address); };
  translation_cache.translate = [this](Pasid pasid, std::uint64_t page) { return pcie.translate_page(pasid, page); };
  translation_cache.request = [this](const PageRequest& page) { return pcie.request_page(page); };
  translation_cache.invalidated.bind([this](std::uint32_t tag) { pcie.tell_invalidated(tag); });
  pcie.page_response.bind([this](PageResponse response) { translation_cache.respond(response); });
  pcie.page_invalidation.bind([this](PageInvalidation&& pages) { translation_cache.invalidate(pages); });
  pcie.uar_written.bind([this](UarWrite write) {
    dma_unit.carry_mmio(write.data.size());
    doorbell.write(write);
  });
  pcie.memory_written.bind([this](std::uint64_t bytes) { dma_unit.carry_mmio(bytes); });
  pcie.command_doorbell.bind([this](std::uint32_t entries) { command_unit.doorbell(entries); });
  pcie.function_reset.bind([this] { function_reset(); });
  pcie.failed.bind([this](HealthSyndrome why) { fail(why); });
  pcie.unmasked.bind([this](std::uint32_t vector) { events.interrupt(vector); });
  doorbell.send.bind([this](SendDoorbell&& ring) { units.ring(std::move(ring)); });
  units.doorbell.bind([this](SendDoorbell&& ring) { engine_->doorbell(std::move(ring)); });
  doorbell.cq_armed.bind([this](CqArmed arm) { completion.arm(arm.cqn, arm.solicited_only, arm.consumer); });
  doorbell.eq_consumed.bind([this](EqConsumed eq) { events.arm(eq.eqn, eq.consumer); });
  completion.forgotten.bind([this](CqeWrite&& lost) { recover_receive(lost.cqe); });
  completion.overrun.bind([this](CqOverrun&& overrun) { fail_users_of(std::move(overrun)); });
  command_unit.qp_command.bind([this](QpCommand command) { execute(std::move(command)); });
  command_unit.qp_created.bind([this](Qpn qpn) { qp_contexts.created(qpn); });
  command_unit.qp_silenced.bind([this](Qpn qpn) {
    send_wqes.forget_qp(qpn);
    gather_scatter.forget(qpn);
    translation_cache.forget(qpn.value);
    completion.forget_qp(qpn);
  });
  command_unit.on_demand.bind([this] { engine_->on_demand(); });
  command_unit.gid_tagged.bind([this](std::uint16_t index, bool tagged) { engine_->gid_tagged(index, tagged); });
  command_unit.cq_destroyed.bind([this](std::uint32_t cqn) { completion.forget_cq(cqn); });
  command_unit.cq_moderated.bind([this](std::uint32_t cqn) { completion.moderated(cqn); });
  command_unit.cq_resize.bind([this](const CqResize& resize) { completion.resize(resize); });
  completion.resized.bind([this](Completion::Resized resized) {
    switch (resized.result) {
      case Completion::Resize::done: return command_unit.cq_resized(resized.producer);
      case Completion::Resize::dead:
        return command_unit.cq_not_resized(CommandSyndrome::dead_cq, CommandStatus::bad_state);
      case Completion::Resize::too_small:
        return command_unit.cq_not_resized(CommandSyndrome::bad_size, CommandStatus::bad_parameter);
    }
  });
  command_unit.flush = [this](std::uint32_t pages, std::function<void()> done) {
    translation.flush(pages, std::move(done));
  };
  windows.flush = command_unit.flush;
  command_unit.link_up = [this] { return port.link_up(); };
  command_unit.violations = [this] {
    return PortViolations{.pkey = rx.counters().bad_pkey, .qkey = engine_->counters().bad_qkey};
  };
  command_unit.port_counters = [this] { return port_counters(); };
  command_unit.srq_modified.bind(
      [this](std::uint32_t srqn, std::uint32_t attributes) { shared_receives.modified(srqn, attributes); });
  command_unit.srq_destroyed.bind([this](std::uint32_t srqn) { shared_receives.destroyed(srqn); });
  command_unit.teardown.bind([this] { forget_objects(); });
}

void NicParts::wire_engine() {
  auto& out = engine_->outputs();
  qp_contexts.filled.bind([this](ContextFill fill) { engine_->context(std::move(fill)); });
  qp_contexts.evicted.bind([this](Qpn qpn) { engine_->evict(qpn); });
  out.transmit.bind([this](TransmitWork work) { units.transmit(work); });
  out.transmit_wanted.bind([this](std::uint32_t unit) { units.wanted(unit); });
  units.transmit_free.bind([this](std::uint32_t unit) { engine_->transmit_free(unit); });
  units.packet.bind([this](PacketIn&& packet) { engine_->packet(std::move(packet)); });
  out.context_write_back.bind(
      [this](ContextWriteBack back) { contexts.icm().write(IcmTable::qpc, back.qpn.value, back.context); });
  out.wqe_fetch.bind([this](WqeFetch fetch) { wqe_fetch.fetch(fetch); });
  out.gather.bind([this](Gather&& gather) { gather_scatter.gather(std::move(gather)); });
  out.scatter.bind([this](Scatter&& scatter) { gather_scatter.scatter(std::move(scatter)); });
  out.access_check.bind([this](AccessCheck&& check) { gather_scatter.check(check); });
  out.presence_check.bind([this](PresenceCheck&& check) { gather_scatter.look(check); });
  out.atomic.bind([this](Atomic&& atomic) { atomic_unit.execute(atomic); });
  out.invalidate.bind([this](Invalidate invalidate) { windows.invalidate(invalidate); });
  out.bind_window.bind([this](BindWindow bind) { windows.bind(bind); });
  out.fast_register.bind([this](FastRegister request) { windows.fast_register(request); });
  windows.done.bind([this](KeyDone&& done) { engine_->key_changed(done); });
  out.srq_take.bind([this](SrqTake take) { shared_receives.take(take); });
  out.srq_give_back.bind([this](SrqGiveBack back) { shared_receives.give_back(back); });
  shared_receives.taken.bind([this](SrqTaken&& taken) { engine_->srq_taken(std::move(taken)); });
  out.packet.bind([this](PacketOut&& packet) { tx.send(std::move(packet)); });
  out.congestion_seen.bind([this](const CongestionSeen& seen) { notification.see(seen); });
  notification.cnp.bind([this](PacketOut&& packet) { tx.send(std::move(packet)); });
  out.wqe_held.bind([this](WqeHeld wqe) { send_wqes.hold(wqe); });
  out.wqe_needed.bind([this](WqeNeeded wqe) { send_wqes.need(wqe); });
  send_wqes.at_hand.bind([this](Tag tag) { engine_->wqe_at_hand(tag); });
  out.wqe_retired.bind([this](WqeRetired&& wqe) { send_wqes.retire(std::move(wqe)); });
  send_wqes.cqe.bind([this](CqeWrite&& cqe) { completion.write(std::move(cqe)); });
  out.cqe.bind([this](CqeWrite&& cqe) { completion.write(std::move(cqe)); });
  out.event.bind([this](EventOut event) {
    // The event follows the completion of the QP's last receive.
    const auto* qp = event.type == EventType::last_wqe_reached ? contexts.qps.find(event.number) : nullptr;
    if (qp != nullptr) return completion.announce_behind(event.behind.value_or(Cqn{qp->receive_cqn}), event);
    events.write(EventWriter::kAsynchronousEqn, event.type, event.number);
  });
  out.timer.bind([this](TimerArm timer) { timers.arm(timer); });
  out.command_done.bind([this](QpCommandDone done) { command_unit.qp_done(done); });
  wqe_fetch.fetched.bind([this](WqeBytes&& bytes) { engine_->wqe(std::move(bytes)); });
  wqe_fetch.displaced.bind([this](Qpn qpn) { engine_->receives_displaced(qpn); });
  gather_scatter.gathered.bind([this](DmaDone&& done) { engine_->gathered(std::move(done)); });
  gather_scatter.scattered.bind([this](DmaDone&& done) { engine_->scattered(std::move(done)); });
  gather_scatter.checked.bind([this](KeyDone&& done) { engine_->checked(done); });
  atomic_unit.done.bind([this](AtomicDone done) { engine_->atomic_done(done); });
  timers.expired.bind([this](TimerExpired timer) {
    // The timer may have been armed again while the context was being filled.
    qp_contexts.with(QpcClient::transmit, timer.qpn, [this, timer] {
      if (!timers.armed(timer.qpn, timer.kind)) engine_->timer_expired(timer.qpn, timer.kind);
    });
  });
}

void NicParts::wire_network() {
  tx.frame.bind([this](Frame&& frame, Duration ready) { port.send(std::move(frame), ready); });
  tx.looped.bind([this](Frame&& frame, Duration ready, Looped how) { loopback.send(std::move(frame), ready, how); });
  tx.credit.bind([this](std::uint8_t credit_class, std::uint32_t packets) { engine_->credit(credit_class, packets); });
  port.left.bind([this](std::uint64_t frame) { tx.left(frame); });
  loopback.left.bind([this](std::uint64_t frame) { tx.left(frame); });
  loopback.frame_out.bind([this](Frame&& frame, Duration delay) { steering.receive_own(std::move(frame), delay); });
  receive_buffer.draining = [this] { return dma_unit.backlog() + gather_scatter.waiting_bytes(); };
  receive_buffer.pause.bind([this](const PriorityPause& pause) {
    const auto* own = gids_.find(0);
    port.send_control(to_frame(pause, own != nullptr ? own->mac : roce::MacAddress{}));
  });
  port.frame_in.bind([this](Frame&& frame, Duration delay) { steering.receive({std::move(frame)}, delay); });
  steering.roce.bind([this](FrameIn&& came) {
    if (take_room(receive_buffer, came)) rx.receive(std::move(came));
  });
  steering.raw.bind([this](FrameIn&& came) {
    if (take_room(receive_buffer, came)) raw.receive(std::move(came));
  });
  steering.sniffed.bind([this](Frame&& frame) { raw.sniff(std::move(frame)); });
  rx.packet.bind([this](PacketIn&& packet) { units.receive(std::move(packet)); });
  raw.packet.bind([this](PacketIn&& packet) { units.receive(std::move(packet)); });
}

// A created QP is resident; any other command may have to wait for the QP's context.
void NicParts::execute(QpCommand&& command) {
  const auto qpn = command.qpn;
  if (command.kind == QpCommand::Kind::create) return engine_->command(std::move(command));
  const bool destroys = command.kind == QpCommand::Kind::destroy;
  qp_contexts.with(QpcClient::transmit, qpn, [this, qpn, destroys, command = std::move(command)]() mutable {
    if (destroys) qp_contexts.destroyed(qpn);
    engine_->command(std::move(command));
  });
}

// Gives back a receive of a shared queue whose completion the QP will never write.
void NicParts::recover_receive(const Cqe& cqe) {
  const auto* qp = contexts.qps.find(cqe.qpn);
  if (cqe.opcode == CqeOpcode::requester || cqe.opcode == CqeOpcode::requester_error) return;
  if (qp == nullptr || !qp->srqn) return;
  shared_receives.give_back({{cqe.qpn}, *qp->srqn, contexts.srqs.serial(*qp->srqn), cqe.wqe_counter});
}

// Also fails the XRC SRQs that complete to this CQ: completions of their receives would be lost.
void NicParts::fail_users_of(CqOverrun&& overrun) {
  const auto cqn = overrun.cqn;
  auto hit = std::move(overrun.losers);
  std::vector<std::uint32_t> srqs;
  for (const auto& [srqn, its_cqn] : contexts.xrc_cqns)
    if (its_cqn == cqn.value) srqs.push_back(srqn);
  std::ranges::sort(srqs);
  for (const auto srqn : srqs) shared_receives.fail(srqn);
  contexts.qps.for_each([&](std::uint32_t qpn, const QpEntry& qp) {
    if (qp.send_cqn == cqn.value || qp.receive_cqn == cqn.value) hit.push_back({qpn});
  });
  for (const auto qpn : hit) qp_contexts.with(QpcClient::transmit, qpn, [this, qpn] { engine_->cq_overrun(qpn); });
}

NicBlocks NicParts::blocks() {
  return {receive_buffer,
          pcie,
          dma_unit,
          device_memory,
          payload_memory,
          contexts,
          qp_contexts,
          translation_cache,
          translation,
          windows,
          gather_scatter,
          atomic_unit,
          wqe_fetch,
          events,
          shared_receives,
          completion,
          doorbell,
          command_unit,
          timers,
          units,
          send_wqes,
          notification,
          tx,
          steering,
          rx,
          raw,
          port,
          loopback,
          *engine_};
}

NicCounters NicParts::counters() const {
  return {pcie.counters(),
          doorbell.counters(),
          command_unit.counters(),
          contexts.counters(),
          wqe_fetch.counters(),
          shared_receives.counters(),
          translation.counters(),
          translation_cache.counters(),
          windows.counters(),
          dma_unit.counters(),
          device_memory.counters(),
          atomic_unit.counters(),
          units.counters(),
          send_wqes.counters(),
          engine_->counters(),
          completion.counters(),
          events.counters(),
          notification.counters(),
          tx.counters(),
          steering.counters(),
          rx.counters(),
          receive_buffer.counters(),
          raw.counters(),
          port.counters(),
          loopback.counters()};
}

PortStatistics NicParts::port_counters() const {
  const auto& sent = tx.counters();
  const auto& got = rx.counters();
  const auto& qps = engine_->counters();
  const auto& notified = notification.counters();
  return {.transmitted_packets = sent.roce_packets,
          .transmitted_bytes = sent.roce_bytes,
          .transmitted_to_groups = sent.group_packets,
          .received_packets = got.packets,
          .received_bytes = got.frame_bytes,
          .received_from_groups = got.group_packets,
          .transmit_discards = sent.no_source_gid,
          .receive_errors = got.malformed,
          .rx_icrc_encapsulated = got.rx_icrc_encapsulated,
          .rx_write_requests = qps.rx_write_requests,
          .rx_read_requests = qps.rx_read_requests,
          .rx_atomic_requests = qps.rx_atomic_requests,
          .out_of_buffer = qps.out_of_buffer,
          .out_of_sequence = qps.out_of_sequence,
          .duplicate_request = qps.duplicate_request,
          .rnr_nak_retry_err = qps.rnr_nak_retry_err,
          .packet_seq_err = qps.packet_seq_err,
          .implied_nak_seq_err = qps.implied_nak_seq_err,
          .local_ack_timeout_err = qps.local_ack_timeout_err,
          .roce_adp_retrans = qps.roce_adp_retrans,
          .resp_local_length_error = qps.resp_local_length_error,
          .resp_cqe_error = qps.resp_cqe_error,
          .resp_cqe_flush_error = qps.resp_cqe_flush_error,
          .resp_remote_access_errors = qps.resp_remote_access_errors,
          .req_cqe_error = qps.req_cqe_error,
          .req_cqe_flush_error = qps.req_cqe_flush_error,
          .req_remote_invalid_request = qps.req_remote_invalid_request,
          .req_remote_access_errors = qps.req_remote_access_errors,
          .req_transport_retries_exceeded = qps.req_transport_retries_exceeded,
          .req_rnr_retries_exceeded = qps.req_rnr_retries_exceeded,
          .roce_slow_restart_cnps = qps.roce_slow_restart_cnps,
          .np_cnp_sent = notified.np_cnp_sent,
          .np_ecn_marked_roce_packets = notified.np_ecn_marked_roce_packets,
          .rp_cnp_handled = qps.rp_cnp_handled,
          .rp_cnp_ignored = qps.rp_cnp_ignored};
}

void NicParts::set_link(bool up) {
  if (!port.set_link(up) || pcie.status() == DeviceStatus::fatal) return;
  events.write(EventWriter::kAsynchronousEqn, up ? EventType::port_active : EventType::port_error, kPortNumber);
}

// The event is the last action of the device.
void NicParts::fail(HealthSyndrome why) {
  if (pcie.status() == DeviceStatus::fatal) return;
  pcie.fail(why);
  stop_work();
  command_unit.reset();
  events.write(EventWriter::kAsynchronousEqn, EventType::device_fatal, 0);
}

void NicParts::forget_objects() {
  stop_work();
  events.reset();
  contexts.clear();
  qp_contexts.reset();
  gids_.clear();
  groups_.clear();
  flows_.clear();
  scaling_.clear();
}

// Resets everything except event queues.
void NicParts::stop_work() {
  engine_->reset();
  wqe_fetch.reset();
  units.reset();
  send_wqes.reset();
  timers.reset();
  atomic_unit.reset();
  gather_scatter.reset();
  translation.reset();
  translation_cache.reset();
  windows.reset();
  notification.reset();
  tx.reset();
  steering.reset();
  raw.reset();
  receive_buffer.reset();
  port.reset();
  loopback.reset();
  completion.reset();
  shared_receives.reset();
  grant_credits();
}

void NicParts::seed(std::uint64_t seed) {
  contexts.seed(seed);
  translation_cache.seed(seed);
  send_wqes.seed(seed);
  wqe_fetch.seed(seed);
  engine_->seed(seed);
}

void NicParts::function_reset() {
  dma_unit.reset();
  device_memory.reset();
  command_unit.reset();
  forget_objects();
}

}  // namespace rnicsim::nic
