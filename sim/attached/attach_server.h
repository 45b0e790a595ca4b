// Where processes attach: an abstract socket, so that nothing is left behind however the simulator ends.
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
#include "sim/descriptor.h"

namespace rnicsim::sim {

class Process;

// A process that said a valid hello and waits for its welcome.
struct Guest {
  Descriptor socket;
  abi::Hello hello;
};

// With a process that is to say hello, in real time: a line when it is late, and an end.
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
  explicit AttachServer(const std::string& name);  // ConfigError: it is no name, or another process has it
  const std::string& name() const { return name_; }
  // The process that listens at the name, of any user; nullopt: there is none, or it accepts no connection.
  static std::optional<ucred> holder(const std::string& name);
  // Not guessable, and of a fixed length: programs hold it in their environment.
  static std::string random_name(const std::string& prefix);

  // The guest with this real pid, or any child of `parent` (pid 0). Looks again until `give_up` says so; nullopt then.
  std::optional<Guest> await(pid_t pid, pid_t parent, const std::function<bool()>& give_up);
  // A guest that no process awaits (serve): neither one of these, as a new image, nor a child, which its parent will
  // announce.
  std::optional<Guest> take_stranger(const std::function<bool(pid_t)>& is_process);
  bool has_visitors() const;

  static void refuse(Guest& guest, int error, const std::string& why);
  // Sends the welcome that makes the guest a process.
  static void welcome(const Process& process);

 private:
  // Connected, no hello yet.
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
