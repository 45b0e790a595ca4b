// SPDX-License-Identifier: Apache-2.0
// Pages behind a scripted node's on-demand region. The host brings pages in when the device requests them; change()
// invalidates a page, makes it read-only or removes it.
#pragma once

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "model/base/event_queue.h"
#include "tests/unit/nic/scripted_node.h"

namespace rnicsim::fuzz {

class HostPages {
 public:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kCount = 8;
  static constexpr std::uint64_t kBytes = kPage * kCount;

  explicit HostPages(nic::test::Node& node) : node_(node) {
    node.host.page_message = [this](PageMessageExtension& message) { take(message); };
  }

  // The node was restarted.
  void restart() {
    base = node_.host.allocate(kBytes);
    pages_ = {};
    going_.clear();
    held_up_.clear();
    responses_.clear();
  }

  // Changes page `which` % kCount: bit 4 removes the page, bit 5 makes it read-only. A present page is invalidated.
  void change(std::uint8_t which) {
    Page& page = pages_[which % kCount];
    const auto was = std::exchange(page, Page{.gone = (which & 0x10) != 0, .read_only = (which & 0x20) != 0});
    if (was.present) take_back(which % kCount);
  }

  std::uint64_t base = 0;

 private:
  using Kind = PageMessageExtension::Kind;
  struct Page {
    bool present = false;
    bool gone = false;
    bool read_only = false;
  };

  void take(PageMessageExtension& message) {
    if (message.kind == Kind::translate) {
      message.translation = translation(message.address);
    } else if (message.kind == Kind::request) {
      responses_.push(now() + kPageIn, message.request);
    } else {
      going_.erase(message.tag);
      if (!going_.empty()) return;
      for (const auto& request : std::exchange(held_up_, {})) respond(request);
    }
  }
  bool holds(std::uint64_t address) const { return address >= base && address - base < kBytes; }
  PageTranslation translation(std::uint64_t address) const {
    PageTranslation answer{.walk = kWalk};
    if (!holds(address)) return answer;
    const Page& page = pages_[(address - base) / kPage];
    answer.present = page.present;
    answer.writable = !page.read_only;
    answer.address = address / kPage * kPage;
    return answer;
  }
  void take_back(std::uint64_t page) {
    PageMessageExtension message;
    message.kind = Kind::invalidate;
    message.invalidation = {nic::test::kPasid, base + page * kPage, 1, next_tag_};
    going_.insert(next_tag_++);
    node_.host.tell(message);
  }
  void run_due() {
    for (PageRequest request; responses_.pop_due(request);) respond(request);
  }
  // No page is brought in while an invalidation is pending.
  void respond(const PageRequest& request) {
    if (!going_.empty()) return held_up_.push_back(request);
    PageMessageExtension message;
    message.kind = Kind::response;
    message.response.index = request.index;
    if (request.pasid == nic::test::kPasid && holds(request.address)) {
      Page& page = pages_[(request.address - base) / kPage];
      page.present = message.response.ok = !page.gone && !(page.read_only && request.write);
    }
    node_.host.tell(message);
  }

  static constexpr Duration kPageIn{2'000'000}, kWalk{70'000};
  nic::test::Node& node_;
  std::array<Page, kCount> pages_;
  std::set<std::uint32_t> going_;  // tags of invalidations that the device has not answered
  std::vector<PageRequest> held_up_;
  EventQueue<PageRequest> responses_{[this] { run_due(); }};
  std::uint32_t next_tag_ = 0;
};

}  // namespace rnicsim::fuzz
