// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/poll.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <vector>

#include "verbs/rsockets/settings.h"
#include "verbs/rsockets/table.h"

namespace rnicsim::rsockets {

namespace {

using Clock = std::chrono::steady_clock;

struct Watched {
  SocketRef socket;  // nullptr: an ordinary descriptor
  std::size_t first = 0;
  std::size_t count = 0;
};

class PollCall {
 public:
  explicit PollCall(std::span<pollfd> asked) : asked_(asked) {
    for (const pollfd& descriptor : asked) watched_.push_back({find_socket(descriptor.fd)});
  }

  bool any_socket() const {
    return std::ranges::any_of(watched_, [](const Watched& watched) { return watched.socket != nullptr; });
  }

  // Returns the number of ready descriptors, or a negated errno. Ordinary descriptors are checked by a single poll(2).
  Answer look() {
    std::vector<pollfd> ordinary;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (watched_[i].socket != nullptr) {
        asked_[i].revents = watched_[i].socket->look(asked_[i].events);
      } else {
        ordinary.push_back(asked_[i]);
      }
    }
    if (!ordinary.empty()) {
      if (const int error = sleep_on(ordinary, 0)) return -error;
      auto answer = ordinary.begin();
      for (std::size_t i = 0; i < asked_.size(); ++i) {
        if (watched_[i].socket == nullptr) asked_[i].revents = (answer++)->revents;
      }
    }
    return std::ranges::count_if(asked_, [](const pollfd& descriptor) { return descriptor.revents != 0; });
  }

  // Sleeps until a descriptor may have changed, at most `timeout_ms`. Returns at once if one is ready already.
  Answer sleep(int timeout_ms) {
    Waiter* waiter = Waiter::of_this_thread();
    if (waiter == nullptr) return -errno;
    begin_wait(*waiter);
    Answer ready;
    try {
      ready = look();
      if (ready == 0) {
        if (const int error = sleep_on(descriptors_, timeout_ms)) ready = -error;
      }
    } catch (...) {  // the thread is cancelled
      end_wait(*waiter);
      throw;
    }
    if (descriptors_.back().revents != 0) waiter->quiet();
    end_wait(*waiter);
    return ready;
  }

 private:
  void end_wait(Waiter& waiter) {
    for (const Watched& watched : watched_) {
      if (watched.socket == nullptr) continue;
      watched.socket->end_wait(waiter, std::span(descriptors_).subspan(watched.first, watched.count));
    }
  }
  void begin_wait(Waiter& waiter) {
    descriptors_.clear();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      watched_[i].first = descriptors_.size();
      if (watched_[i].socket != nullptr) {
        watched_[i].socket->begin_wait(waiter, descriptors_);
      } else {
        descriptors_.push_back({asked_[i].fd, asked_[i].events, 0});
      }
      watched_[i].count = descriptors_.size() - watched_[i].first;
    }
    descriptors_.push_back({waiter.fd(), POLLIN, 0});
  }

  std::span<pollfd> asked_;
  std::vector<Watched> watched_;
  std::vector<pollfd> descriptors_;
};

// Sleep time in ms until the next check, for a wait that ends at `end`.
int next_sleep_ms(bool forever, Clock::time_point end) {
  const auto longest = settings().wake_up_interval;
  if (forever) return int(longest.count());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return int(std::clamp(left, std::chrono::milliseconds(0), longest).count());
}

}  // namespace

Answer poll_descriptors(std::span<pollfd> descriptors, int timeout_ms) {
  PollCall call(descriptors);
  if (!call.any_socket()) {
    const int ready = ::poll(descriptors.data(), nfds_t(descriptors.size()), timeout_ms);
    return ready < 0 ? -errno : ready;
  }
  const auto end = Clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0));
  const PollingTime polling;
  do {
    const Answer ready = call.look();
    if (ready != 0 || timeout_ms == 0) return ready;
  } while (!polling.over());
  for (;;) {
    const int longest = next_sleep_ms(timeout_ms < 0, end);
    if (const Answer ready = call.sleep(longest)) return ready;
    if (const Answer ready = call.look()) return ready;
    if (timeout_ms > 0 && Clock::now() >= end) return 0;
  }
}

namespace {

bool in(int fd, const fd_set* set) { return set != nullptr && FD_ISSET(fd, set); }

// Clears a set of select() and adds the descriptors that have `events`. Returns their number.
int answer(std::span<const pollfd> descriptors, short events, const fd_set* asked, fd_set* set) {
  if (set == nullptr) return 0;
  int count = 0;
  FD_ZERO(set);
  for (const pollfd& descriptor : descriptors) {
    if ((descriptor.revents & events) == 0 || !in(descriptor.fd, asked)) continue;
    FD_SET(descriptor.fd, set);
    ++count;
  }
  return count;
}

}  // namespace

Answer select_descriptors(int count, fd_set* read, fd_set* write, fd_set* except, const timeval* timeout) {
  if (count < 0 || count > FD_SETSIZE) return -EINVAL;
  std::vector<pollfd> descriptors;
  for (int fd = 0; fd < count; ++fd) {
    const int events = (in(fd, read) ? POLLIN : 0) | (in(fd, write) ? POLLOUT : 0);
    if (events != 0 || in(fd, except)) descriptors.push_back({fd, short(events), 0});
  }
  int timeout_ms = -1;
  if (timeout != nullptr) {
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0) return -EINVAL;
    const auto whole = std::int64_t(timeout->tv_sec) * 1000 + (timeout->tv_usec + 999) / 1000;
    timeout_ms = int(std::min<std::int64_t>(whole, std::numeric_limits<int>::max()));
  }
  const Answer ready = poll_descriptors(descriptors, timeout_ms);
  if (ready < 0) return ready;
  if (std::ranges::any_of(descriptors, [](const pollfd& found) { return (found.revents & POLLNVAL) != 0; })) {
    return -EBADF;
  }
  const fd_set none{};
  const fd_set asked_read = read != nullptr ? *read : none;
  const fd_set asked_write = write != nullptr ? *write : none;
  const fd_set asked_except = except != nullptr ? *except : none;
  return answer(descriptors, POLLIN | POLLHUP | POLLERR, &asked_read, read) +
         answer(descriptors, POLLOUT | POLLERR, &asked_write, write) +
         answer(descriptors, short(~(POLLIN | POLLOUT)), &asked_except, except);
}

}  // namespace rnicsim::rsockets
