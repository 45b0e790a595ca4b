// SPDX-License-Identifier: Apache-2.0
// Posts a list of work requests up to the first one that fails.
#pragma once

namespace rnicsim::linux_provider {

template <class WorkRequest>
int refuse(WorkRequest* list, WorkRequest** bad, int error) {
  if (bad != nullptr) *bad = list;
  return error;
}

template <class WorkRequest, class Post>
int post_list(WorkRequest* list, WorkRequest** bad, Post&& post_one) {
  for (WorkRequest* wr = list; wr != nullptr; wr = wr->next)
    if (const int error = post_one(*wr)) return refuse(wr, bad, error);
  return 0;
}

}  // namespace rnicsim::linux_provider
