// Waiting for descriptors in simulated time: the simulator watches copies of them, and the thread looks again itself.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// The real poll() without a wait.
int poll_now(std::span<pollfd> descriptors);

// Until one of them is ready or `deadline` (absolute, or abi::kForever): number ready, 0, or -1 with EINTR. Fills
// revents.
int wait_descriptors(abi::ThreadSlot& slot, std::span<pollfd> descriptors, std::uint64_t deadline);

// Before a call that would block on `fd`: true when the call may go ahead.
bool wait_ready(abi::ThreadSlot& slot, int fd, short events);

// For a call that reads from or writes to `fd`: charges it, and waits if it would block. False, with errno: EINTR, ...
bool prepare(int fd, short events, bool dont_wait);

// A descriptor that does not block answers for itself.
bool blocks(int fd);

bool is_stream_socket(int fd);
bool is_pipe(int fd);
bool is_pipe_or_socket(int fd);
bool has_no_type(int fd);  // of epoll, eventfd and their like

std::size_t bytes_of(std::span<const iovec> parts);

}  // namespace rnicsim::clock
