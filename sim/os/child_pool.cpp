// SPDX-License-Identifier: Apache-2.0
#include "sim/os/child_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

struct Child {
  std::size_t job;
  pid_t process;
  int results;  // this process's end of the pipe
  std::string text;
};

[[noreturn]] void work_here(const ChildWork& work, std::size_t job, int out) {
  std::string text;
  int status = 0;
  try {
    text = work.work(job);
  } catch (const std::exception& error) {
    text = error.what();
    status = 1;
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto written = write(out, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  _exit(status);
}

Child start(const ChildWork& work, std::size_t job) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw_errno("pipe");
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    throw std::system_error(error, std::generic_category(), "fork");
  }
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    work_here(work, job, ends[1]);
  }
  close(ends[1]);
  return {job, process, ends[0], {}};
}

// True: end of the child's output.
bool read_some(Child& child) {
  std::array<char, 65536> buffer;
  const auto count = read(child.results, buffer.data(), buffer.size());
  if (count > 0) child.text.append(buffer.data(), static_cast<std::size_t>(count));
  return count == 0 || (count < 0 && errno != EINTR);
}

ChildResult finish(Child& child) {
  close(child.results);
  int status = 0;
  while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {}
  if (WIFSIGNALED(status))
    return {child.job,
            {},
            fmt::format("the process was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))};
  if (WEXITSTATUS(status) == 0) return {child.job, std::move(child.text), {}};
  return {child.job, {}, child.text.empty() ? "the process ended without a result" : std::move(child.text)};
}

class Pool {
 public:
  ~Pool() {
    for (auto& child : children_) {
      kill(child.process, SIGKILL);
      finish(child);
    }
  }

  void add(Child&& child) { children_.push_back(std::move(child)); }
  std::size_t size() const { return children_.size(); }
  std::vector<std::size_t> under_way() const {
    std::vector<std::size_t> jobs;
    for (const auto& child : children_) jobs.push_back(child.job);
    return jobs;
  }

  // Children that ended. Waits up to kLookMs for one.
  std::vector<ChildResult> wait() {
    std::vector<pollfd> waiting;
    for (const auto& child : children_) waiting.push_back({child.results, POLLIN, 0});
    constexpr int kLookMs = 250;
    if (poll(waiting.data(), waiting.size(), kLookMs) < 0 && errno != EINTR) throw_errno("poll");
    std::vector<ChildResult> ended;
    for (std::size_t i = children_.size(); i-- > 0;) {
      if (waiting[i].revents == 0 || !read_some(children_[i])) continue;
      ended.push_back(finish(children_[i]));
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return ended;
  }

 private:
  std::vector<Child> children_;
};

}  // namespace

void run_in_children(const std::vector<std::size_t>& jobs, unsigned at_a_time, const ChildWork& work) {
  Pool pool;
  auto next = jobs.begin();
  const auto fill = [&] {
    while (next != jobs.end() && pool.size() < at_a_time) pool.add(start(work, *next++));
  };
  fill();
  while (pool.size() > 0) {
    const auto ended = pool.wait();
    fill();  // starts further jobs first, because done() may take long
    for (const auto& result : ended) work.done(result);
    if (work.look) work.look(pool.under_way());
  }
}

}  // namespace rnicsim::sim
