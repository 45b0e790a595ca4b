// SPDX-License-Identifier: Apache-2.0
// Two NICs on a cable, each with a scripted driver. A driver check watches node `a` from its first access on.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/driver_check/driver_check.h"
#include "model/fabric/link.h"
#include "tests/unit/nic/scripted_node.h"

namespace rnicsim::driver_check {

using nic::test::Node;
using namespace rnicsim::literals;

class CheckedPair : public testing::Test {
 protected:
  void SetUp() override { build({}); }
  void TearDown() override { clear(); }

  void build(const CheckParams& params, bool checked = true) {
    clear();
    cable_ = std::make_unique<Cable>();
    if (checked) cable_->check.emplace(a().nic, params);
  }
  // Brings both QPs to RTS.
  void bring_up() {
    for (auto* node : {&a(), &b()}) {
      node->bring_up();
      node->create_qp();
    }
    a().connect(b(), 3);
    b().connect(a(), 3);
  }
  void run(double us) { sc_core::sc_start(us, sc_core::SC_US); }

  Node& a() { return cable_->a; }
  Node& b() { return cable_->b; }
  DriverCheck& check() { return *cable_->check; }
  nic::test::Remote at_b() { return {b().buffer, nic::test::kKey}; }
  static constexpr std::uint64_t page() {
    return abi::kUarBase + std::uint64_t{nic::test::kUarPage} * abi::kUarPageSize;
  }
  void write(std::uint32_t length = 64, bool blueflame = false) {
    a().post_send({.opcode = abi::SendOpcode::write, .length = length, .remote = at_b(), .blueflame = blueflame});
  }
  // Expects exactly one new finding since the last call, with this kind and with all `words` in its text.
  void expect_finding(FindingKind kind, const std::vector<std::string>& words) {
    const auto& all = check().findings();
    ASSERT_EQ(all.size(), seen_ + 1) << listed();
    const auto& found = all.back();
    EXPECT_EQ(found.kind, kind) << found.line();
    for (const auto& word : words) EXPECT_NE(found.text.find(word), std::string::npos) << word << " in: " << found.text;
    EXPECT_FALSE(found.accesses.empty());
    EXPECT_EQ(found.text.find('\n'), std::string::npos);
    seen_ = all.size();
  }
  void expect_nothing() { EXPECT_EQ(check().findings().size(), seen_) << listed(); }
  std::string listed() {
    std::string lines;
    for (const auto& finding : check().findings()) lines += finding.line() + '\n';
    return lines;
  }

 private:
  struct Cable {
    Cable() {
      a.nic.frame_out().bind([this](Frame frame) { link.send(0, std::move(frame)); });
      b.nic.frame_out().bind([this](Frame frame) { link.send(1, std::move(frame)); });
      link.out(0).bind([this](Frame frame, Duration delay) { a.nic.receive(std::move(frame), delay); });
      link.out(1).bind([this](Frame frame, Duration delay) { b.nic.receive(std::move(frame), delay); });
    }
    fabric::Link link{"link", {}};
    Node a{"a", {}, 1}, b{"b", {}, 2};
    std::optional<DriverCheck> check;
  };
  void clear() {
    cable_.reset();
    seen_ = 0;
    sc_core::sc_get_curr_simcontext()->reset();
  }

  std::unique_ptr<Cable> cable_;
  std::size_t seen_ = 0;
};

template <class T>
std::array<std::byte, sizeof(T)> little(T value) {
  std::array<std::byte, sizeof(T)> bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes;
}

}  // namespace rnicsim::driver_check
