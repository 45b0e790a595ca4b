// Lists of work requests, of sends and of receives.
#pragma once

#include <cerrno>

namespace rnicsim::verbs {

// Posts until the list ends or a WR is refused; a list linked to itself ends when the queue is full. 0 or errno.
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
