// SPDX-License-Identifier: Apache-2.0
// A real thread: its state in /proc, and signals to it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace rnicsim::sim {

class NativeThread {
 public:
  NativeThread(pid_t process, std::uint32_t thread) : process_(process), thread_(pid_t(thread)) {}
  bool exists() const;
  bool sleeps() const;                                       // state S: blocked in a system call
  bool is_stopped() const;                                   // state T: by a signal
  std::string system_call() const;                           // for people: "system call 202"
  bool catches(int signal) const;                            // the thread's process has a handler for the signal
  bool awaits(int signal) const;                             // the signal is pending for the thread
  std::map<std::string, std::uint64_t> signal_sets() const;  // by name as in /proc: SigBlk, SigCgt; bit 0 is signal 1
  void send(int signal) const;

 private:
  std::string read(const char* file) const;
  bool has_signal(const char* set, int signal) const;
  pid_t process_;
  pid_t thread_;
};

pid_t parent_of(pid_t process);  // 0: no such process
// Exit status of a zombie as wait(2) encodes it; 0 if there is no such process.
int exit_status_of(pid_t process);
uid_t user_of(pid_t process);
std::chrono::microseconds processor_time_of(pid_t process);  // sum over all threads; 0: no such process

}  // namespace rnicsim::sim
