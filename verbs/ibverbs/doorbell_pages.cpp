// SPDX-License-Identifier: Apache-2.0
#include "verbs/ibverbs/doorbell_pages.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace rnicsim::verbs {

namespace {

constexpr std::uint32_t kMostPages = 512;  // per context

std::optional<std::uint32_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const char* end = text + std::strlen(text);
  std::uint32_t value = 0;
  const auto [stopped, error] = std::from_chars(text, end, value);
  return error == std::errc{} && stopped == end ? std::optional(value) : std::nullopt;
}

}  // namespace

DoorbellPage::DoorbellPage(DeviceAccess& device, std::uint32_t page)
    : uar([&device](std::uint32_t offset, std::span<const std::byte> data) { device.mmio_write(offset, data); }, page) {
}

DoorbellPages::Limits DoorbellPages::limits_from_environment() {
  Limits limits;
  limits.total = std::clamp(number_in("RNICSIM_TOTAL_UUARS").value_or(limits.total), 1u, kMostPages);
  limits.dedicated = std::min(number_in("RNICSIM_NUM_LOW_LAT_UUARS").value_or(limits.dedicated), limits.total - 1);
  return limits;
}

DoorbellPages::DoorbellPages(DevicePort& port, std::uint32_t first, const Limits& limits)
    : port_(port), limits_(limits) {
  pages_.push_back(std::make_unique<DoorbellPage>(port, first));
  pages_.back()->shared = limits.dedicated == 0;
}

DoorbellPages::~DoorbellPages() {
  for (const auto& page : pages_) port_.free_uar(page->uar.page());
}

DoorbellPage& DoorbellPages::take() {
  QueueGuard guard(lock_, port_);
  DoorbellPage* page = unused(false);
  if (page == nullptr && count(false) < limits_.dedicated) page = add(false);
  if (page == nullptr) page = unused(true);
  if (page == nullptr && count(true) < limits_.total - limits_.dedicated) page = add(true);
  if (page == nullptr) page = &least_used();
  ++page->users;
  return *page;
}

DoorbellPage* DoorbellPages::take_for_thread() {
  QueueGuard guard(lock_, port_);
  DoorbellPage* page = add(false);
  if (page == nullptr) return nullptr;
  page->of_thread = true;
  page->users = 1;
  return page;
}

void DoorbellPages::share(DoorbellPage& page) {
  QueueGuard guard(lock_, port_);
  ++page.users;
}

void DoorbellPages::give_back(DoorbellPage& page) {
  QueueGuard guard(lock_, port_);
  if (--page.users != 0 || !page.of_thread) return;
  port_.free_uar(page.uar.page());
  std::erase_if(pages_, [&](const auto& each) { return each.get() == &page; });
}

DoorbellPage* DoorbellPages::unused(bool shared) const {
  const auto found = std::ranges::find_if(
      pages_, [&](const auto& page) { return page->shared == shared && !page->of_thread && page->users == 0; });
  return found != pages_.end() ? found->get() : nullptr;
}

DoorbellPage* DoorbellPages::add(bool shared) {
  std::uint32_t number = 0;
  if (port_.alloc_uar(number) != 0) return nullptr;
  pages_.push_back(std::make_unique<DoorbellPage>(port_, number));
  pages_.back()->shared = shared;
  return pages_.back().get();
}

// The shared page with the fewest users. If the kernel gave no shared page, the last dedicated page becomes shared.
DoorbellPage& DoorbellPages::least_used() const {
  if (count(true) == 0) {
    const auto own = [](const auto& page) { return !page->of_thread; };
    (*std::ranges::find_if(pages_.rbegin(), pages_.rend(), own))->shared = true;
  }
  DoorbellPage* least = nullptr;
  for (const auto& page : pages_)
    if (page->shared && (least == nullptr || page->users < least->users)) least = page.get();
  return *least;
}

std::uint32_t DoorbellPages::count(bool shared) const {
  return std::uint32_t(
      std::ranges::count_if(pages_, [&](const auto& page) { return page->shared == shared && !page->of_thread; }));
}

}  // namespace rnicsim::verbs
