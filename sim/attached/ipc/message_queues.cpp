// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/ipc/message_queues.h"

#include <utility>

namespace rnicsim::sim {

int MessageQueues::get(key_t key, int flags, const IpcCaller& caller, std::uint64_t& number) {
  const auto fits = [](const Queue&) { return 0; };
  const auto make = [&](std::optional<Queue>& made) {
    made.emplace(Queue{.owner = {key, flags, caller}, .changed = caller.time});
    return 0;
  };
  return queues_.get(key, flags, caller, fits, make, number);
}

bool MessageQueues::is_wanted(const Message& message, const Wanted& wanted) {
  if (wanted.type == 0) return true;
  if (wanted.type < 0) return message.type <= (wanted.type == INT64_MIN ? INT64_MAX : -wanted.type);
  return (message.type == wanted.type) != ((wanted.flags & MSG_EXCEPT) != 0);
}

// For a negative type the message of the lowest type, else the first match.
std::deque<MessageQueues::Message>::iterator MessageQueues::find(std::deque<Message>& messages, const Wanted& wanted) {
  auto found = messages.end();
  for (auto each = messages.begin(); each != messages.end(); ++each) {
    if (!is_wanted(*each, wanted)) continue;
    if (wanted.type >= 0) return each;
    if (found == messages.end() || each->type < found->type) found = each;
  }
  return found;
}

// Gives the message to the first receiver that wants it, else queues it. Receivers with a too short buffer get E2BIG.
void MessageQueues::take_in(Queue& queue, Message message, const IpcCaller& caller) {
  queue.last_sender = caller.process;
  queue.sent = caller.time;
  std::erase_if(queue.receivers, [this](const Receiver& each) { return !goes_on(each.wait); });
  for (auto each = queue.receivers.begin(); each != queue.receivers.end();) {
    if (!is_wanted(message, each->wanted)) {
      ++each;
      continue;
    }
    const Receiver receiver = *each;
    each = queue.receivers.erase(each);
    if (message.bytes.size() > receiver.wanted.most && (receiver.wanted.flags & MSG_NOERROR) == 0) {
      ended(receiver.wait, E2BIG, nullptr);
      continue;
    }
    queue.last_receiver = receiver.caller.process;
    queue.received = caller.time;
    message.bytes.resize(std::min<std::size_t>(message.bytes.size(), receiver.wanted.most));
    return ended(receiver.wait, 0, &message);
  }
  queue.bytes += message.bytes.size();
  queue.messages.push_back(std::move(message));
}

// Sends the messages of waiting senders, in order of arrival; a message without room does not stop later ones that
// fit.
void MessageQueues::admit_senders(Queue& queue) {
  std::erase_if(queue.senders, [this](const Sender& each) { return !goes_on(each.wait); });
  for (auto each = queue.senders.begin(); each != queue.senders.end();) {
    if (!queue.has_room(each->message.bytes.size())) {
      ++each;
      continue;
    }
    Sender sender = std::move(*each);
    each = queue.senders.erase(each);
    take_in(queue, std::move(sender.message), sender.caller);
    ended(sender.wait, 0, nullptr);
  }
}

int MessageQueues::send(std::uint64_t number, Message message, int flags, const IpcCaller& caller, IpcWait wait) {
  if (message.bytes.size() > kMostBytes || message.type < 1) return EINVAL;
  Queue* queue = queues_.find(number);
  if (queue == nullptr) return EINVAL;
  if (const int error = queue->owner.may(kIpcAlter, caller); error != 0) return error;
  if (!queue->has_room(message.bytes.size())) {
    if ((flags & IPC_NOWAIT) != 0) return EAGAIN;
    queue->senders.push_back({wait, caller, std::move(message)});
    return kWaits;
  }
  take_in(*queue, std::move(message), caller);
  return 0;
}

int MessageQueues::receive(std::uint64_t number, const Wanted& wanted, const IpcCaller& caller, IpcWait wait,
                           Message& message) {
  if (wanted.most > std::uint64_t(INT64_MAX)) return EINVAL;
  // MSG_COPY serves checkpoints of processes, which a simulated host does not have.
  if ((wanted.flags & MSG_COPY) != 0) return ENOSYS;
  Queue* queue = queues_.find(number);
  if (queue == nullptr) return EINVAL;
  if (const int error = queue->owner.may(kIpcRead, caller); error != 0) return error;
  const auto found = find(queue->messages, wanted);
  if (found == queue->messages.end()) {
    if ((wanted.flags & IPC_NOWAIT) != 0) return ENOMSG;
    queue->receivers.push_back({wait, caller, wanted});
    return kWaits;
  }
  if (found->bytes.size() > wanted.most && (wanted.flags & MSG_NOERROR) == 0) return E2BIG;
  message = std::move(*found);
  queue->messages.erase(found);
  queue->bytes -= message.bytes.size();
  queue->last_receiver = caller.process;
  queue->received = caller.time;
  message.bytes.resize(std::min<std::size_t>(message.bytes.size(), wanted.most));
  admit_senders(*queue);
  return 0;
}

int MessageQueues::stat(std::uint64_t number, const IpcCaller& caller, msqid_ds& told) {
  Queue* queue = queues_.find(number);
  if (queue == nullptr) return EINVAL;
  if (const int error = queue->owner.may(kIpcRead, caller); error != 0) return error;
  told.msg_perm = queue->owner.told();
  told.msg_stime = queue->sent;
  told.msg_rtime = queue->received;
  told.msg_ctime = queue->changed;
  told.__msg_cbytes = queue->bytes;
  told.msg_qnum = queue->messages.size();
  told.msg_qbytes = queue->most_bytes;
  told.msg_lspid = pid_t(queue->last_sender);
  told.msg_lrpid = pid_t(queue->last_receiver);
  return 0;
}

int MessageQueues::set(std::uint64_t number, const msqid_ds& wanted, const IpcCaller& caller) {
  Queue* queue = queues_.find(number);
  if (queue == nullptr) return EINVAL;
  if (const int error = queue->owner.may_change(caller); error != 0) return error;
  if (wanted.msg_qbytes > kMostBytesQueued && caller.user != 0) return EPERM;
  queue->owner.change(wanted.msg_perm);
  queue->most_bytes = wanted.msg_qbytes;
  queue->changed = caller.time;
  admit_senders(*queue);
  return 0;
}

int MessageQueues::remove(std::uint64_t number, const IpcCaller& caller) {
  Queue* queue = queues_.find(number);
  if (queue == nullptr) return EINVAL;
  if (const int error = queue->owner.may_change(caller); error != 0) return error;
  const Queue gone = std::move(*queue);
  queues_.remove(number);
  for (const Sender& each : gone.senders)
    if (goes_on(each.wait)) ended(each.wait, EIDRM, nullptr);
  for (const Receiver& each : gone.receivers)
    if (goes_on(each.wait)) ended(each.wait, EIDRM, nullptr);
  return 0;
}

msginfo MessageQueues::info(bool used) const {
  msginfo info{};
  info.msgmax = kMostBytes;
  info.msgmnb = kMostBytesQueued;
  info.msgmni = int(kMostQueues);
  info.msgssz = 16;
  info.msgseg = 0xffff;
  info.msgpool = int(kMostQueues * kMostBytesQueued / 1024);
  info.msgmap = int(kMostBytesQueued);
  info.msgtql = int(kMostBytesQueued);
  if (!used) return info;
  info.msgpool = int(queues_.size());
  info.msgmap = info.msgtql = 0;
  for (const auto& [number, queue] : queues_) {
    info.msgmap += int(queue.messages.size());
    info.msgtql += int(queue.bytes);
  }
  return info;
}

}  // namespace rnicsim::sim
