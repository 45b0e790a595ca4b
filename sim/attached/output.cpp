// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>

namespace rnicsim::sim {

OutputRelay::OutputRelay() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void OutputRelay::add(Descriptor from, std::string label, std::FILE* to) {
  ::fcntl(from.get(), F_SETFL, ::fcntl(from.get(), F_GETFL) | O_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = sources_.size();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, from.get(), &event);
  sources_.push_back({std::move(from), LabelledLines(std::move(label), to)});
  events_.resize(sources_.size());
}

bool OutputRelay::drain() {
  const int count = ::epoll_wait(epoll_.get(), events_.data(), int(events_.size()), 0);
  if (count <= 0) return false;
  // In the order of the programs: the kernel's order differs from run to run.
  std::sort(events_.begin(), events_.begin() + count,
            [](const epoll_event& a, const epoll_event& b) { return a.data.u64 < b.data.u64; });
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_[std::size_t(i)];
    Source& source = sources_[event.data.u64];
    any |= drain(source);
    // All write ends were closed before epoll_wait() returned, so drain() read the last bytes.
    if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) end(source);
  }
  return any;
}

bool OutputRelay::drain(Source& source) {
  bool any = false;
  for (int there = 0; ::ioctl(source.from.get(), FIONREAD, &there) == 0 && there > 0;) {
    any = true;
    take(source, std::size_t(there));
    if (goes_on && !goes_on()) break;
  }
  if (any) std::fflush(source.lines.file());
  return any;
}

void OutputRelay::take(Source& source, std::size_t bytes) {
  std::array<char, 65536> buffer;
  while (bytes > 0) {
    const ssize_t got = ::read(source.from.get(), buffer.data(), std::min(buffer.size(), bytes));
    if (got <= 0) return;
    source.lines.print({buffer.data(), std::size_t(got)});
    bytes -= std::size_t(got);
    relayed_ += std::uint64_t(got);
  }
}

void OutputRelay::end(Source& source) {
  source.lines.end();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.from.get(), nullptr);
  source.from.reset();
}

}  // namespace rnicsim::sim
