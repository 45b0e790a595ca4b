// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/guest/vm/socket_ends.h"
#include "sim/os/progress_line.h"
#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

constexpr char kQemu[] = "qemu-system-x86_64";
// Reads of one descriptor in one step: a guest with much output must not delay the others.
constexpr int kMostReads = 16;

SocketEnds make_pipe_ends() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// no_timer_check: on a busy machine the timer may be too late for the kernel's test. loglevel=5: warnings are printed.
std::string kernel_parameters(const MachineParams& params) {
  auto text = fmt::format(
      "console=ttyS0 quiet loglevel=5 panic=-1 net.ifnames=0 random.trust_cpu=on mitigations=off no_timer_check "
      "rnicsim.guest={} rnicsim.guests={}",
      params.number, params.count);
  return params.kernel_words.empty() ? text : text + ' ' + params.kernel_words;
}

std::vector<std::string> qemu_words(const MachineParams& params, const GuestImage& image, int console, int agent) {
  constexpr std::uint64_t kMiB = 1u << 20;
  const auto memory = fmt::format("{}M", params.memory.bytes / kMiB);
  return {kQemu, "-name", fmt::format("g{}", params.number), "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", memory,
          "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
          // Shared memory, for devices outside of QEMU.
          "-object", fmt::format("memory-backend-memfd,id=memory,size={},share=on", memory), "-machine",
          "q35,memory-backend=memory", "-kernel", fmt::format("/proc/self/fd/{}", image.kernel.get()), "-initrd",
          fmt::format("/proc/self/fd/{}", image.initramfs.get()), "-append", kernel_parameters(params), "-chardev",
          fmt::format("socket,id=console,fd={}", console), "-serial", "chardev:console", "-chardev",
          fmt::format("socket,id=agent,fd={}", agent), "-device", "virtio-serial-pci", "-device",
          "virtserialport,chardev=agent,name=rnicsim.agent"};
}

// Reads the available bytes, up to a limit. False: end of the stream.
template <class Take>
bool read_some(const Descriptor& from, const Take& take) {
  std::array<char, 16 * 1024> buffer;
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    take(std::string_view(buffer.data(), std::size_t(got)));
  }
  return true;
}

}  // namespace

Machine::Machine(const MachineParams& params, const GuestImage& image, const DeviceArguments& devices)
    : name_(fmt::format("g{}", params.number)),
      console_(params.console_file),
      message_lines_(name_ + "'s QEMU", stderr) {
  SocketEnds agent = make_socket_ends(), console = make_socket_ends(), messages = make_pipe_ends();
  ChildProgram program;
  program.command = qemu_words(params, image, console.there.get(), agent.there.get());
  program.command.insert(program.command.end(), devices.words.begin(), devices.words.end());
  program.inherited = {image.kernel.get(), image.initramfs.get(), console.there.get(), agent.there.get()};
  for (const auto& descriptor : devices.inherited) program.inherited.push_back(descriptor.get());
  program.output = messages.there.get();
  try {
    qemu_ = std::make_unique<Child>(program);
  } catch (const std::system_error& error) {
    throw ConfigError(fmt::format("{} cannot be started: {} (Debian's package qemu-system-x86 has it)", kQemu,
                                  error.code().message()));
  }
  agent_ = std::move(agent.here);
  console_end_ = std::move(console.here);
  messages_ = std::move(messages.here);
}

void Machine::send(FrameKind kind, std::uint32_t command, std::string_view payload) {
  outgoing_ += encode_frame(kind, command, payload);
  flush();
}

void Machine::flush() {
  while (!outgoing_.empty() && agent_) {
    const ssize_t sent = ::send(agent_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // later; step() detects the end of QEMU
    outgoing_.erase(0, std::size_t(sent));
  }
}

void Machine::add_to(std::vector<pollfd>& watched) const {
  if (agent_) watched.push_back({agent_.get(), short(outgoing_.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  if (console_end_) watched.push_back({console_end_.get(), POLLIN, 0});
  if (messages_) watched.push_back({messages_.get(), POLLIN, 0});
}

std::vector<Frame> Machine::step() {
  std::vector<Frame> frames;
  // Checked before the reads: if QEMU has ended, they find all that it has written.
  const auto ended = qemu_->ended();
  flush();
  read_console();
  read_messages();
  read_frames(frames);
  if (ended) lose(fmt::format("QEMU of this guest ended: {}", describe_end(*ended)));
  return frames;
}

void Machine::read_console() {
  const auto take = [&](std::string_view text) { console_.add(text); };
  if (console_end_ && !read_some(console_end_, take)) console_end_.reset();
  for (const auto& fault : console_.take_faults()) {
    had_fault_ = true;
    progress_line::erase();
    fmt::print(stderr, "rnicsim: {}'s kernel: {}\n", name_, fault);
  }
}

void Machine::read_messages() {
  if (messages_ && !read_some(messages_, [&](std::string_view text) { message_lines_.print(text); })) {
    message_lines_.end();
    messages_.reset();
  }
}

void Machine::read_frames(std::vector<Frame>& frames) {
  if (agent_ && !read_some(agent_, [&](std::string_view bytes) { reader_.add(bytes); })) agent_.reset();
  while (auto frame = reader_.next()) {
    if (frame->kind == FrameKind::ready)
      ready_ = true;
    else
      frames.push_back(std::move(*frame));
  }
  if (reader_.is_broken()) lose("the agent's channel received data that is not a frame");
}

void Machine::lose(const std::string& why) {
  if (!lost_) lost_ = why;
}

}  // namespace rnicsim::sim
