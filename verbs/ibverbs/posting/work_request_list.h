// SPDX-License-Identifier: Apache-2.0
// Lists of work requests.
#pragma once

#include <cerrno>

namespace rnicsim::verbs {

// Posts work requests until the list ends or one fails. A cyclic list ends when the queue is full. Returns 0 or an
// errno.
template <class WorkRequest, class PostOne>
int post_list(WorkRequest* list, WorkRequest** bad, PostOne&& post_one) {
  for (WorkRequest* wr = list; wr != nullptr; wr = wr->next) {
    if (const int error = post_one(*wr)) {
      *bad = wr;
      return errno = error;
    }
  }
  return 0;
}

template <class WorkRequest>
int refuse(WorkRequest* list, WorkRequest** bad, int error) {
  *bad = list;
  return errno = error;
}

}  // namespace rnicsim::verbs
