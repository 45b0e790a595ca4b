// SPDX-License-Identifier: Apache-2.0
// Socket at which processes attach to the simulator. Its name is abstract, so no file is left behind when the
// simulator is killed.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/abi/attach.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class Process;

// A process that sent a valid hello and waits for its welcome.
struct Guest {
  Descriptor socket;
  abi::Hello hello;
};

// Real time that a process takes to send its hello: a warning after kLate; ends() is true after kMost.
class Patience {
 public:
  explicit Patience(std::string who) : who_(std::move(who)) {}
  bool ends();
  const std::string& who() const { return who_; }

  static constexpr std::chrono::seconds kLate{5};
  static constexpr std::chrono::seconds kMost{60};

 private:
  const std::string who_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool said_ = false;
};

class AttachServer {
 public:
  explicit AttachServer(const std::string& name);  // throws ConfigError: the name is malformed or in use
  const std::string& name() const { return name_; }
  // Credentials of the process that listens at `name`, whichever user it belongs to. nullopt: no process listens
  // there, or the connection is refused.
  static std::optional<ucred> holder(const std::string& name);
  // A name that other users cannot guess. The length is fixed: programs hold the name in their environment, and the
  // size of the environment moves their stack.
  static std::string random_name(const std::string& prefix);

  // The guest with the real process number `pid`, or with pid = 0 any child of `parent`. Waits until give_up() returns
  // true, then returns nullopt.
  std::optional<Guest> await(pid_t pid, pid_t parent, const std::function<bool()>& give_up);
  // A guest that no process awaits (`serve`). Not returned: a new image of an attached process (is_process is true for
  // its pid), and a child of an attached process, which its parent announces.
  std::optional<Guest> take_stranger(const std::function<bool(pid_t)>& is_process);
  bool has_visitors() const;

  static void refuse(Guest& guest, int error, const std::string& why);
  // Sends the welcome that makes the guest a process.
  static void welcome(const Process& process);

 private:
  // A connected process that has not sent its hello.
  struct Visitor {
    Descriptor socket;
    pid_t pid;
    std::chrono::steady_clock::time_point since;
  };

  void accept_all(int timeout_ms);
  void accept_visitors();
  void hear_visitors();
  void forget_the_gone();
  std::optional<Guest> greet(Visitor& visitor);

  std::string name_;
  Descriptor listener_;
  std::vector<Visitor> visitors_;
  std::vector<Guest> guests_;
  std::set<uid_t> refused_users_;
};

}  // namespace rnicsim::sim
