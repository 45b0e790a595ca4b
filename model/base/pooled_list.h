// SPDX-License-Identifier: Apache-2.0
// A list whose nodes come from a pool that all lists of one item type share: the node that was freed last is used next.
// For queues of which many exist and few hold items: a few cache lines serve them all.
#pragma once

#include <boost/container/list.hpp>
#include <boost/pool/pool_alloc.hpp>

namespace rnicsim {

template <class Item>
using PooledList = boost::container::list<
    Item, boost::fast_pool_allocator<Item, boost::default_user_allocator_new_delete, boost::details::pool::null_mutex>>;

}  // namespace rnicsim
