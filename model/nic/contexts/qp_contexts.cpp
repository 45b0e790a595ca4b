// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/qp_contexts.h"

namespace rnicsim::nic {

QpContexts::QpContexts(ContextCache& contexts) : contexts_(contexts) {
  contexts_.qpc.fill = [this](std::uint64_t qpn) { fill({static_cast<std::uint32_t>(qpn)}); };
  contexts_.qpc.evicted = [this](std::uint64_t qpn) { evict({static_cast<std::uint32_t>(qpn)}); };
}

std::optional<Duration> QpContexts::touch(QpcClient client, Qpn qpn) {
  if (contexts_.qps.find(qpn.value) == nullptr) return Duration{};
  return contexts_.qpc.touch(static_cast<std::size_t>(client), qpn.value);
}

void QpContexts::await(QpcClient client, Qpn qpn, std::function<void()> then) {
  contexts_.qpc.await(static_cast<std::size_t>(client), qpn.value, std::move(then));
}

void QpContexts::fill(Qpn qpn) {
  contexts_.icm().read<QpContext>(IcmTable::qpc, qpn.value, contexts_.qpc.params().fill_lines,
                                  [this, qpn](std::optional<QpContext> context) {
                                    if (const auto held = held_.find(qpn.value); held != held_.end())
                                      held->second.evicted = false;
                                    filled(ContextFill{qpn, context});
                                    contexts_.qpc.filled(qpn.value);
                                  });
}

void QpContexts::evict(Qpn qpn) {
  if (const auto held = held_.find(qpn.value); held != held_.end()) return void(held->second.evicted = true);
  evicted(Qpn{qpn});
}

void QpContexts::release(Qpn qpn) {
  const auto held = held_.find(qpn.value);
  if (held == held_.end() || --held->second.times != 0) return;
  const bool leaves = held->second.evicted;
  held_.erase(held);
  if (leaves) evicted(Qpn{qpn});
}

void QpContexts::destroyed(Qpn qpn) {
  if (const auto held = held_.find(qpn.value); held != held_.end()) held->second.evicted = false;
  contexts_.qpc.forget(qpn.value);
}

}  // namespace rnicsim::nic
