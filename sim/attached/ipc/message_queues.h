// SPDX-License-Identifier: Apache-2.0
// System V message queues of a host, as Linux keeps them (msgop(2)).
#pragma once

#include <sys/msg.h>

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "sim/attached/ipc/ipc_object.h"

namespace rnicsim::sim {

class MessageQueues {
 public:
  static constexpr std::size_t kMostBytes = 8192;         // bytes of one message
  static constexpr std::size_t kMostBytesQueued = 16384;  // MSGMNB
  static constexpr std::size_t kMostQueues = 32000;
  static constexpr int kWaits = -1;

  struct Message {
    std::int64_t type = 0;
    std::vector<std::byte> bytes;
  };
  // Arguments of msgrcv(2).
  struct Wanted {
    std::int64_t type = 0;
    std::uint64_t most = 0;
    int flags = 0;
  };

  // Callbacks: goes_on() says whether a thread still waits. ended() ends a wait with 0 or an errno; a receiver gets
  // its message.
  std::function<bool(IpcWait)> goes_on;
  std::function<void(IpcWait, int error, const Message*)> ended;

  // The calls return 0, an errno, or kWaits: the thread waits as `wait` until ended() is called.
  int get(key_t key, int flags, const IpcCaller& caller, std::uint64_t& number);
  int send(std::uint64_t number, Message message, int flags, const IpcCaller& caller, IpcWait wait);
  int receive(std::uint64_t number, const Wanted& wanted, const IpcCaller& caller, IpcWait wait, Message& message);
  int stat(std::uint64_t number, const IpcCaller& caller, msqid_ds& told);
  int set(std::uint64_t number, const msqid_ds& wanted, const IpcCaller& caller);
  int remove(std::uint64_t number, const IpcCaller& caller);
  msginfo info(bool used) const;
  std::size_t size() const { return queues_.size(); }
  // Number of the queue at position `index`; nullopt: too few queues.
  std::optional<int> at(std::uint64_t index) const { return queues_.at(index); }

 private:
  struct Sender {
    IpcWait wait;
    IpcCaller caller;
    Message message;
  };
  struct Receiver {
    IpcWait wait;
    IpcCaller caller;
    Wanted wanted;
  };
  struct Queue {
    IpcOwner owner;
    std::size_t most_bytes = kMostBytesQueued, bytes = 0;
    std::int64_t changed = 0, sent = 0, received = 0;  // seconds since 1970
    std::uint32_t last_sender = 0, last_receiver = 0;
    std::deque<Message> messages{};
    std::deque<Sender> senders{};  // in order of arrival
    std::deque<Receiver> receivers{};

    bool has_room(std::size_t bytes_more) const {
      return bytes + bytes_more <= most_bytes && messages.size() + 1 <= most_bytes;
    }
  };

  static bool is_wanted(const Message& message, const Wanted& wanted);
  static std::deque<Message>::iterator find(std::deque<Message>& messages, const Wanted& wanted);
  void take_in(Queue& queue, Message message, const IpcCaller& caller);
  void admit_senders(Queue& queue);

  IpcObjects<Queue> queues_{kMostQueues};
};

}  // namespace rnicsim::sim
