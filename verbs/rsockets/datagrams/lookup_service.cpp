// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/datagrams/lookup_service.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

namespace rnicsim::rsockets {

// Never destroyed: the thread may outlive main().
LookupService& LookupService::service() {
  static LookupService& only = *new LookupService;
  return only;
}

int LookupService::add(const std::shared_ptr<LookupSocket>& socket) {
  const std::unique_lock lock(mutex_);
  if (news_ == nullptr) news_ = std::make_unique<Waiter>();
  if (news_->fd() < 0) {
    news_.reset();
    return EMFILE;
  }
  sockets_.push_back(socket);
  news_->wake();
  if (running_) return 0;
  try {
    std::thread([this] { run(); }).detach();
  } catch (const std::system_error&) {
    sockets_.pop_back();
    return EAGAIN;
  }
  running_ = true;
  return 0;
}

void LookupService::remove(const LookupSocket& socket) {
  std::unique_lock lock(mutex_);
  if (std::erase_if(sockets_, [&](const auto& entry) { return entry.get() == &socket; }) == 0) return;
  news_->wake();
  const std::uint64_t round = rounds_;
  rounds_changed_.wait(lock, [&] { return rounds_ != round || !running_; });
}

void LookupService::run() {
  std::unique_lock lock(mutex_);
  while (!sockets_.empty()) {
    {
      const auto sockets = sockets_;
      lock.unlock();
      std::vector<pollfd> descriptors;
      for (const auto& socket : sockets) descriptors.push_back({socket->fd(), POLLIN, 0});
      descriptors.push_back({news_->fd(), POLLIN, 0});
      if (sleep_on(descriptors, -1) == 0) {
        if (descriptors.back().revents != 0) news_->quiet();
        for (std::size_t i = 0; i < sockets.size(); ++i) {
          if (descriptors[i].revents != 0) sockets[i]->take_lookup();
        }
      }
    }
    lock.lock();
    ++rounds_;
    rounds_changed_.notify_all();
  }
  running_ = false;
  rounds_changed_.notify_all();
}

}  // namespace rnicsim::rsockets
