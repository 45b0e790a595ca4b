// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of the NIC: two NICs on one cable, each with a scripted host.
#pragma once

#include <memory>

#include "model/fabric/link.h"
#include "tests/unit/nic/scripted_node.h"

namespace rnicsim::nic::test {

// Brings up both nodes. The QPs are created and not connected.
class Cable {
 public:
  explicit Cable(const NicParams& params) : a("a", params, 1), b("b", params, 2) {
    a.nic.frame_out().bind([this](Frame frame) {
      if (!drop(frame)) link_.send(0, std::move(frame));
    });
    b.nic.frame_out().bind([this](Frame frame) {
      if (!drop(frame)) link_.send(1, std::move(frame));
    });
    link_.out(0).bind([this](Frame frame, Duration delay) { a.nic.receive(std::move(frame), delay); });
    link_.out(1).bind([this](Frame frame, Duration delay) { b.nic.receive(std::move(frame), delay); });
    for (auto* node : {&a, &b}) {
      node->bring_up();
      node->create_qp();
    }
  }
  void connect(
      std::uint8_t mtu, const Node::Change& change = [](abi::Qpc&) {}) {
    a.connect(b, mtu, change);
    b.connect(a, mtu, change);
  }

  std::function<bool(Frame&)> drop = [](Frame&) { return false; };

 private:
  fabric::Link link_{"link", {}};

 public:
  Node a, b;
};

class Pair : public testing::Test {
 protected:
  void SetUp() override { build({}); }
  void TearDown() override { clear(); }

  void build(const NicParams& params) {
    clear();
    cable_ = std::make_unique<Cable>(params);
  }
  void connect(
      std::uint8_t mtu = 3, const Node::Change& change = [](abi::Qpc&) {}) {
    cable_->connect(mtu, change);
  }
  Node& a() { return cable_->a; }
  Node& b() { return cable_->b; }
  std::function<bool(Frame&)>& drop() { return cable_->drop; }
  void run(double us) { sc_core::sc_start(us, sc_core::SC_US); }
  Remote at_b(std::uint64_t offset = 0) { return {b().buffer + offset, kKey}; }

 private:
  void clear() {
    cable_.reset();
    sc_core::sc_get_curr_simcontext()->reset();
  }

  std::unique_ptr<Cable> cable_;
};

}  // namespace rnicsim::nic::test
