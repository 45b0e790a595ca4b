#include "model/nic/context_cache.h"

namespace rnicsim::nic {

void ContextCache::clear() {
  cqs.clear();
  eqs.clear();
  regions.clear();
  qps.clear();
  map_.clear();
}

}  // namespace rnicsim::nic
