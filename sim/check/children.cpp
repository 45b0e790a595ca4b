// SPDX-License-Identifier: Apache-2.0
#include "sim/check/children.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

namespace rnicsim::sim::check {
namespace {

using Clock = std::chrono::steady_clock;

// Time between the request to end and SIGKILL.
constexpr auto kFarewell = std::chrono::seconds(5);

// Blocks the signals and waits for them, so that no handler interrupts other code. Ignored signals stay ignored.
class HeldSignals {
 public:
  HeldSignals() {
    // With SIGCHLD ignored, the kernel would discard the status of an ended child.
    const struct sigaction standard {};
    sigaction(SIGCHLD, &standard, &child_before_);
    sigemptyset(&held_);
    sigaddset(&held_, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&held_, signal);
    }
    sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() {
    // timeout(1) sends its signal to its child and then to the process group: take the second signal too, so that it
    // does not end this process.
    if (stopped_)
      while (wait(Clock::now()) != 0) continue;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    sigaction(SIGCHLD, &child_before_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  const sigset_t& before() const { return before_; }
  // Returns the signal that arrived; 0: none until `until`.
  int wait(Clock::time_point until) {
    const auto left = std::max(until - Clock::now(), Clock::duration::zero());
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    const int signal = std::max(0, sigtimedwait(&held_, nullptr, &time));
    stopped_ = stopped_ || (signal != 0 && signal != SIGCHLD);
    return signal;
  }

 private:
  sigset_t held_, before_;
  struct sigaction child_before_ {};
  bool stopped_ = false;
};

struct Running {
  std::size_t number;
  pid_t process;
  Clock::time_point begun, limit;
  bool told = false;  // was asked to end
};

// Runs in the child. Returns errno of the step that failed; on success does not return.
int become(const Child& child, char* const* words, const sigset_t& signals) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);
  const auto redirect = [](int stream, const char* path, int flags) {
    const int file = open(path, flags | O_CLOEXEC, 0666);
    return file >= 0 && dup2(file, stream) >= 0;
  };
  if (!redirect(STDIN_FILENO, "/dev/null", O_RDONLY)) return errno;
  if (!redirect(STDOUT_FILENO, child.out.c_str(), O_WRONLY | O_CREAT | O_TRUNC)) return errno;
  if (!redirect(STDERR_FILENO, child.err.c_str(), O_WRONLY | O_CREAT | O_TRUNC)) return errno;
  if (chdir(child.folder.c_str()) != 0) return errno;
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvp(words[0], words);
  return errno;
}

// nullopt: the child could not be started; `ended` has the reason.
std::optional<pid_t> start(const Child& child, const sigset_t& signals, Ended& ended) {
  std::vector<char*> words;
  for (const auto& word : child.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t process = fork();
  if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (process == 0) {
    const int failure = become(child, words.data(), signals);
    [[maybe_unused]] const auto told = write(ends[1], &failure, sizeof failure);
    _exit(127);
  }
  close(ends[1]);
  int failure = 0;
  ssize_t got = 0;
  do got = read(ends[0], &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  close(ends[0]);
  if (got != sizeof failure) return process;
  waitpid(process, nullptr, 0);
  ended.not_started = child.words[0] + ": " + std::strerror(failure);
  return std::nullopt;
}

void tell_to_end(const std::vector<Running>& all, int signal) {
  for (const auto& running : all) kill(-running.process, signal);
}

// Waits for the children that were asked to end; kills them after kFarewell.
void bury(std::vector<Running>& all) {
  const auto until = Clock::now() + kFarewell;
  while (!all.empty()) {
    std::erase_if(all,
                  [](const auto& running) { return waitpid(running.process, nullptr, WNOHANG) == running.process; });
    if (all.empty()) return;
    if (Clock::now() >= until) tell_to_end(all, SIGKILL);
    usleep(10'000);
  }
}

class Pool {
 public:
  Pool(const std::vector<Child>& children, unsigned at_once, const std::function<void(std::size_t, const Ended&)>& done)
      : children_(children), at_once_(at_once), done_(done) {}
  ~Pool() {
    tell_to_end(running_, SIGTERM);
    bury(running_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run() {
    while (next_ < children_.size() || !running_.empty()) {
      while (next_ < children_.size() && running_.size() < at_once_) start_next();
      if (running_.empty()) continue;
      const int signal = signals_.wait(std::ranges::min(running_, {}, &Running::limit).limit);
      if (signal != 0 && signal != SIGCHLD) throw Interrupted(signal);
      end_those_too_late();
      collect();
    }
  }

 private:
  void start_next() {
    const auto number = next_++;
    Ended ended;
    const auto begun = Clock::now();
    if (const auto process = start(children_[number], signals_.before(), ended))
      running_.push_back({number, *process, begun, begun + children_[number].limit});
    else
      done_(number, ended);
  }

  void end_those_too_late() {
    for (auto& running : running_) {
      if (Clock::now() < running.limit) continue;
      kill(-running.process, running.told ? SIGKILL : SIGTERM);
      running.told = true;
      running.limit = Clock::now() + kFarewell;
    }
  }

  void collect() {
    for (std::size_t i = 0; i < running_.size();) {
      int status = 0;
      if (waitpid(running_[i].process, &status, WNOHANG) != running_[i].process) {
        ++i;
        continue;
      }
      const auto running = running_[i];
      running_.erase(running_.begin() + std::ptrdiff_t(i));
      // Ends the rest of the child's process group.
      kill(-running.process, SIGKILL);
      Ended ended;
      ended.too_late = running.told;
      ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      ended.seconds = std::chrono::duration<double>(Clock::now() - running.begun).count();
      done_(running.number, ended);
    }
  }

  const std::vector<Child>& children_;
  const unsigned at_once_;
  const std::function<void(std::size_t, const Ended&)>& done_;
  HeldSignals signals_;
  std::vector<Running> running_;
  std::size_t next_ = 0;
};

}  // namespace

void run_children(const std::vector<Child>& children, unsigned at_once,
                  const std::function<void(std::size_t child, const Ended& ended)>& done) {
  Pool(children, at_once, done).run();
}

}  // namespace rnicsim::sim::check
