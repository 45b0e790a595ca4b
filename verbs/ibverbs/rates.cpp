// SPDX-License-Identifier: Apache-2.0
// Static rates as enumerators, as multiples of 2.5 Gb/s and in Mb/s (InfiniBand's signalling and data rates).
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>

namespace {

struct Rate {
  ibv_rate rate;
  int multiple;
  int mbps;
};

constexpr std::array kRates{
    Rate{IBV_RATE_2_5_GBPS, 1, 2500},     Rate{IBV_RATE_5_GBPS, 2, 5000},        Rate{IBV_RATE_10_GBPS, 4, 10000},
    Rate{IBV_RATE_20_GBPS, 8, 20000},     Rate{IBV_RATE_30_GBPS, 12, 30000},     Rate{IBV_RATE_40_GBPS, 16, 40000},
    Rate{IBV_RATE_60_GBPS, 24, 60000},    Rate{IBV_RATE_80_GBPS, 32, 80000},     Rate{IBV_RATE_120_GBPS, 48, 120000},
    Rate{IBV_RATE_14_GBPS, 6, 14062},     Rate{IBV_RATE_56_GBPS, 22, 56250},     Rate{IBV_RATE_112_GBPS, 45, 112500},
    Rate{IBV_RATE_168_GBPS, 67, 168750},  Rate{IBV_RATE_25_GBPS, 10, 25781},     Rate{IBV_RATE_100_GBPS, 40, 103125},
    Rate{IBV_RATE_200_GBPS, 80, 206250},  Rate{IBV_RATE_300_GBPS, 120, 309375},  Rate{IBV_RATE_28_GBPS, 11, 28125},
    Rate{IBV_RATE_50_GBPS, 20, 53125},    Rate{IBV_RATE_400_GBPS, 160, 425000},  Rate{IBV_RATE_600_GBPS, 240, 637500},
    Rate{IBV_RATE_800_GBPS, 320, 850000}, Rate{IBV_RATE_1200_GBPS, 480, 1275000}};

template <class Member>
const Rate* find(Member Rate::*member, Member value) {
  const auto found = std::ranges::find(kRates, value, member);
  return found != kRates.end() ? &*found : nullptr;
}

}  // namespace

extern "C" {

int ibv_rate_to_mult(ibv_rate rate) {
  const Rate* found = find(&Rate::rate, rate);
  return found != nullptr ? found->multiple : -1;
}

ibv_rate mult_to_ibv_rate(int multiple) {
  const Rate* found = find(&Rate::multiple, multiple);
  return found != nullptr ? found->rate : IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) {
  const Rate* found = find(&Rate::rate, rate);
  return found != nullptr ? found->mbps : -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  const Rate* found = find(&Rate::mbps, mbps);
  return found != nullptr ? found->rate : IBV_RATE_MAX;
}

}  // extern "C"
