// A thread as the real kernel sees it: /proc and signals.
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
  bool sleeps() const;              // state S: blocked in a system call
  bool is_stopped() const;          // state T: by a signal
  std::string system_call() const;  // "system call 202", for people
  bool catches(int signal) const;   // it has a handler
  bool awaits(int signal) const;    // one was sent, and has not come yet
  std::map<std::string, std::uint64_t> signal_sets() const;  // by name as in /proc: SigBlk, SigCgt; bit 0 is signal 1
  void send(int signal) const;

 private:
  std::string read(const char* file) const;
  bool has_signal(const char* set, int signal) const;
  pid_t process_;
  pid_t thread_;
};

pid_t parent_of(pid_t process);  // 0: it is gone
// Of one that has ended and not been waited for: as wait(2) tells it, or 0.
int exit_status_of(pid_t process);
uid_t user_of(pid_t process);
std::chrono::microseconds processor_time_of(pid_t process);  // of all its threads; 0: it is gone

}  // namespace rnicsim::sim
