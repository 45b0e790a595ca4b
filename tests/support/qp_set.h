// SPDX-License-Identifier: Apache-2.0
// Additional QPs of an endpoint, each connected to a QP of the other host's endpoint.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/endpoint.h"

namespace rnicsim::testing {

class QpSet {
 public:
  // The endpoint's own QP is the first of `count`.
  QpSet(Endpoint& end, std::size_t count) : end_(end), qps_{end.qp} {
    while (qps_.size() < count) qps_.push_back(end_.create_qp());
  }
  ~QpSet() {
    for (std::size_t i = 1; i < qps_.size(); ++i) destroy(i);
  }
  QpSet(const QpSet&) = delete;
  QpSet& operator=(const QpSet&) = delete;

  ibv_qp* operator[](std::size_t i) const { return qps_[i]; }
  std::size_t size() const { return qps_.size(); }
  std::vector<EndpointAddress> addresses() {
    std::vector<EndpointAddress> all;
    for (std::size_t i = 0; i < size(); ++i) use(i, [&] { all.push_back(end_.address()); });
    return all;
  }
  void connect(const std::vector<EndpointAddress>& remote) {
    for (std::size_t i = 0; i < size(); ++i) connect(i, remote[i]);
  }
  void connect(std::size_t i, const EndpointAddress& remote) {
    use(i, [&] { end_.connect(remote); });
  }
  int post(std::size_t i, const ibv_send_wr& wr) {
    int error = 0;
    use(i, [&] { error = end_.post(wr); });
    return error;
  }
  void destroy(std::size_t i) {
    if (qps_[i] == nullptr) return;
    EXPECT_EQ(ibv_destroy_qp(qps_[i]), 0);
    qps_[i] = nullptr;
    if (i == 0) end_.qp = nullptr;
  }
  // Creates QP `i` again after it was destroyed.
  void create(std::size_t i) {
    qps_[i] = end_.create_qp();
    if (i == 0) end_.qp = qps_[0];
  }
  std::size_t index_of(std::uint32_t number) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (qps_[i] != nullptr && qps_[i]->qp_num == number) return i;
    return size();
  }

 private:
  template <class Action>
  void use(std::size_t i, Action&& action) {
    const struct Restore {
      Endpoint& end;
      ibv_qp* own;
      ~Restore() { end.qp = own; }
    } restore{end_, end_.qp};
    end_.qp = qps_[i];
    action();
  }

  Endpoint& end_;
  std::vector<ibv_qp*> qps_;
};

}  // namespace rnicsim::testing
