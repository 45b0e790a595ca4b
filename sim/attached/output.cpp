#include "sim/attached/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "sim/progress_line.h"

namespace rnicsim::sim {

OutputRelay::OutputRelay() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void OutputRelay::add(Descriptor from, std::string label, std::FILE* to) {
  ::fcntl(from.get(), F_SETFL, ::fcntl(from.get(), F_GETFL) | O_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = sources_.size();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, from.get(), &event);
  sources_.push_back({std::move(from), std::move(label), to, {}});
}

void OutputRelay::print(Source& source, std::string_view text) {
  source.partial += text;
  std::size_t start = 0;
  progress_line::erase();
  for (std::size_t end; (end = source.partial.find('\n', start)) != std::string::npos; start = end + 1)
    fmt::print(source.to, "{}| {}\n", source.label, std::string_view(source.partial).substr(start, end - start));
  source.partial.erase(0, start);
}

bool OutputRelay::drain() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), int(events.size()), 0);
  if (count <= 0) return false;
  // In the order of the programs, not in that in which the kernel lists them.
  std::sort(events.begin(), events.begin() + count,
            [](const epoll_event& a, const epoll_event& b) { return a.data.u64 < b.data.u64; });
  bool any = false;
  for (int i = 0; i < count; ++i) any |= drain(sources_[events[std::size_t(i)].data.u64]);
  return any;
}

bool OutputRelay::drain(Source& source) {
  std::array<char, 65536> buffer;
  ssize_t got;
  bool any = false;
  while ((got = ::read(source.from.get(), buffer.data(), buffer.size())) > 0) {
    print(source, {buffer.data(), std::size_t(got)});
    any = true;
  }
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    if (!source.partial.empty()) print(source, "\n");
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.from.get(), nullptr);
    source.from.reset();
  }
  std::fflush(source.to);
  return any;
}

}  // namespace rnicsim::sim
