// A list whose nodes come from a pool of all lists of their kind: what was freed last is used next. For queues that
// many have and few use at a time: a few lines of the cache serve them all.
#pragma once

#include <boost/container/list.hpp>
#include <boost/pool/pool_alloc.hpp>

namespace rnicsim {

template <class Item>
using PooledList =
    boost::container::list<Item, boost::fast_pool_allocator<Item, boost::default_user_allocator_new_delete,
                                                            boost::details::pool::null_mutex>>;

}  // namespace rnicsim
