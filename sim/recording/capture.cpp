// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/capture.h"

#include "model/base/byte_stream.h"
#include "model/base/kernel.h"
#include "model/nic/nic.h"
#include "model/nic/packets/port.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/fault_record.h"
#include "sim/processes/boundary.h"

namespace rnicsim::sim {

Capture::Capture(System& system, const std::filesystem::path& path)
    : frames_(system.boundary(), [this](Duration at, std::uint32_t node, std::span<const std::byte> note) {
        ByteReader in(note);
        const auto comment = in.take_bytes();
        file_->write(interfaces_[node], at, in.take_bytes(),
                     {reinterpret_cast<const char*>(comment.data()), comment.size()});
      }) {
  if (system.writes_files()) file_.emplace(path.string());
  const auto& topology = system.config().topology;
  const auto adapters = static_cast<std::uint32_t>(system.adapters());
  interfaces_.resize(adapters + system.switches());
  const auto add_interface = [&](std::uint32_t node) {
    if (file_) interfaces_[node] = file_->add_interface(topology.node_name(node));
  };
  for (std::uint32_t i = 0; i < adapters; ++i) {
    add_interface(i);
    if (auto* cable = system.faults(i))
      watch(i, cable->entered);
    else
      watch(i, system.adapter(i).nic().blocks().port.sent, "");
  }
  // A switch's interface captures only the switch's own pause frames and the frames that it marked, not forwarded
  // frames.
  for (std::uint32_t i = 0; i < system.switches(); ++i) {
    const auto& params = system.config().switch_of(i);
    if (params.pfc.priorities == 0 && params.ecn.priorities == 0) continue;
    const auto node = adapters + i;
    add_interface(node);
    watch(node, system.pause_sent(i), "");
    watch(node, system.marked(i), "marked by the switch (CE)");
  }
  see_to_it_that_all_is_well();
}

void Capture::watch(std::uint32_t node, trace::Point<Frame>& point, const char* comment) {
  point.subscribe([this, node, comment](const Frame& frame) { add(node, frame, comment); });
}

void Capture::watch(std::uint32_t node, trace::Point<fabric::FaultTrace>& point) {
  point.subscribe([this, node](const fabric::FaultTrace& entered) {
    add(node, entered.frame, entered.fault ? fault_comment(*entered.fault) : std::string());
  });
}

void Capture::add(std::uint32_t node, const Frame& frame, std::string_view comment) {
  std::vector<std::byte> note, bytes;
  frame.append_to(bytes);
  ByteWriter out(note);
  out.put_bytes(std::as_bytes(std::span(comment)));
  out.put_bytes(bytes);
  frames_.add(now(), node, InOrder::Origin::own, note);
}

void Capture::finish() {
  frames_.finish();
  if (file_) file_->flush();
  see_to_it_that_all_is_well();
}

void Capture::see_to_it_that_all_is_well() const {
  if (file_ && !file_->error().empty()) throw ConfigError(file_->error());
}

}  // namespace rnicsim::sim
