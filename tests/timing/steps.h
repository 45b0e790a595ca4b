// SPDX-License-Identifier: Apache-2.0
// The steps of docs/timing.md as functions of the parameters of two hosts, for tests that compare simulated times with
// sums of steps.
#pragma once

#include <algorithm>
#include <cmath>

#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {

class Steps : public RcPair {
 protected:
  // The poll interval is set to 100 us, so that no poll of an empty CQ falls between the measured steps.
  explicit Steps(std::vector<std::string> sets = {}, const std::vector<std::string>& faults = {})
      : RcPair(with_long_polls(std::move(sets)), faults) {}

  static Duration time(std::uint64_t bytes, std::uint64_t rate) {
    return {static_cast<std::int64_t>((bytes * 8'000'000'000'000 + rate - 1) / rate)};
  }
  Duration svc(std::uint64_t bytes, ByteCount header) const {
    const auto tlps = std::max<std::uint64_t>(1, (bytes + link().max_payload.bytes - 1) / link().max_payload.bytes);
    return time(bytes + tlps * header.bytes, pcie());
  }
  Duration read(std::uint64_t bytes) const {
    const auto asks =
        std::max<std::uint64_t>(1, (bytes + link().max_read_request.bytes - 1) / link().max_read_request.bytes);
    return time(asks * link().request_header.bytes, pcie()) + nic().dma.read_latency +
           svc(bytes, link().completion_header) + nic().dma.read_internal;
  }
  Duration write(std::uint64_t bytes) const { return svc(bytes, link().request_header) + nic().dma.write_latency; }
  // Time from the start of a packet until its last bit has left, and until the packet has arrived. `rest`: bytes beyond
  // the headers that every packet has.
  Duration leaving(std::uint64_t rest) const {
    const auto frame = std::max<std::uint64_t>(58 + rest, nic().port.least_frame.bytes) + nic().port.overhead.bytes;
    return time(frame, nic().port.rate.bits_per_second);
  }
  Duration wire(std::uint64_t rest) const { return leaving(rest) + config().link.latency; }
  Duration cqe_behind_payload() const { return svc(64, link().request_header); }

  // The payload wakes a polling thread inside the simulator; the CQE follows directly behind.
  Duration poll_behind_payload() const {
    const auto& cpu = config().host.cpu;
    return cpu.detect + cpu.poll_cqe - cqe_behind_payload();
  }

  const sim::Config& config() const { return const_cast<Steps*>(this)->system().config(); }
  const nic::NicParams& nic() const { return config().nic; }
  const nic::PcieLinkParams& link() const { return nic().dma.link; }
  static std::uint64_t pcie() { return std::uint64_t(std::llround(8e9 * 128 / 130 * 16 * (1 - 0.03))); }  // Gen3 x16

 private:
  static std::vector<std::string> with_long_polls(std::vector<std::string> sets) {
    sets.push_back("host.poll_interval=100us");
    return sets;
  }
};

}  // namespace rnicsim::testing
