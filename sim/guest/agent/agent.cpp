// SPDX-License-Identifier: Apache-2.0
// The agent in a guest: runs the launcher's commands, several at a time, and reports their output and exit status. Init
// executes the agent as the guest's first process; a test runs it as an ordinary process.
//
// usage: guest_agent PORT      a character device; or fd:N, a descriptor that it has inherited
#include <fcntl.h>
#include <signal.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sim/guest/agent/frames.h"
#include "sim/guest/agent/guest_command.h"

namespace {

using namespace rnicsim::sim;

constexpr int kLookMs = 100;
constexpr int kCannotExecute = 126;

bool is_first_process() { return ::getpid() == 1; }

[[noreturn]] void power_off() {
  if (!is_first_process()) std::exit(0);
  ::kill(-1, SIGTERM);
  ::sync();
  ::reboot(RB_POWER_OFF);
  std::exit(1);
}

Descriptor open_port(const std::string& name) {
  Descriptor port(name.starts_with("fd:") ? std::atoi(name.c_str() + 3) : ::open(name.c_str(), O_RDWR | O_CLOEXEC));
  if (!port || ::fcntl(port.get(), F_SETFD, FD_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), name);
  return port;
}

class Agent {
 public:
  explicit Agent(Descriptor port) : port_(std::move(port)) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    deaths_ = Descriptor(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!deaths_) throw std::system_error(errno, std::generic_category(), "signalfd");
  }

  void serve() {
    utsname system{};
    ::uname(&system);
    tell(FrameKind::ready, 0, system.release);
    while (!is_port_closed_) step();
  }

 private:
  void step() {
    watched_ = {{port_.get(), POLLIN, 0}, {deaths_.get(), POLLIN, 0}};
    for (const auto& command : commands_) command.add_to(watched_);
    bool unsettled = false;
    for (const auto& command : commands_) unsettled |= !command.is_settled();
    if (::poll(watched_.data(), watched_.size(), unsettled ? kLookMs : -1) < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "poll");
    for (std::size_t i = 2; i < watched_.size(); ++i)
      if (watched_[i].revents != 0)
        for (auto& command : commands_) command.relay(watched_[i].fd);
    if (watched_[1].revents != 0) reap();
    if (watched_[0].revents != 0) listen();
    for (auto& command : commands_) command.look_whether_settled(std::chrono::steady_clock::now());
    commands_.remove_if([](const auto& command) { return command.is_over(); });
  }

  // Also reaps orphans: the kernel makes the first process their parent.
  void reap() {
    std::array<signalfd_siginfo, 16> notes;
    while (::read(deaths_.get(), notes.data(), sizeof notes) > 0) {}
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
      for (auto& command : commands_)
        if (command.pid() == pid && !command.has_ended()) command.end(status);
  }

  void listen() {
    std::array<char, 16 * 1024> buffer;
    const ssize_t got = ::read(port_.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      is_port_closed_ = true;
      return;
    }
    reader_.add({buffer.data(), std::size_t(got)});
    while (const auto frame = reader_.next()) obey(*frame);
    if (reader_.is_broken()) throw std::runtime_error("the port received data that is not a frame");
  }

  void obey(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::start: return start(frame);
      case FrameKind::signal:
        for (const auto& command : commands_)
          if (command.number() == frame.command) command.signal(int(payload_number(frame.payload).value_or(SIGTERM)));
        return;
      case FrameKind::power_off: power_off();
      default: std::fprintf(stderr, "guest_agent: a frame of kind %d is not for an agent\n", int(frame.kind));
    }
  }

  void start(const Frame& frame) {
    try {
      commands_.emplace_back(frame.command, frame.payload, tell_);
    } catch (const std::system_error& error) {
      tell(FrameKind::errors, frame.command, std::string("guest_agent: ") + error.what() + '\n');
      tell(FrameKind::ended, frame.command, number_payload(kCannotExecute));
    }
  }

  // Blocks while the launcher does not read. The commands then block on their pipes, so that no output is lost.
  void tell(FrameKind kind, std::uint32_t command, std::string_view payload) {
    const std::string bytes = encode_frame(kind, command, payload);
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t written = ::write(port_.get(), bytes.data() + at, bytes.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        is_port_closed_ = true;
        return;
      }
      at += std::size_t(written);
    }
  }

  Descriptor port_, deaths_;
  const GuestCommand::Tell tell_ = [this](FrameKind kind, std::uint32_t command, std::string_view payload) {
    tell(kind, command, payload);
  };
  FrameReader reader_;
  std::list<GuestCommand> commands_;
  std::vector<pollfd> watched_;
  bool is_port_closed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: guest_agent PORT\n");
    return 2;
  }
  try {
    Agent(open_port(argv[1])).serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "guest_agent: %s\n", error.what());
    if (!is_first_process()) return 1;
  }
  // A guest without its launcher has no work.
  power_off();
}
