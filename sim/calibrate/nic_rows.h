// The experiments of one NIC: of each its own points, which can be run with other values, and its own numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/calibrate/estimates.h"
#include "sim/calibrate/row.h"

namespace rnicsim::sim::calibrate {

struct NicRow {
  Row row;                          // with the NIC's checks alone
  std::vector<std::size_t> points;  // that have the NIC, among all of the row
  std::size_t first_number = 0;     // of its checks, among all numbers

  std::size_t end_number() const { return first_number + row.checks.size(); }
};

// What a run of some of the rows is with some values.
struct Trial {
  std::vector<std::string> sets;
  std::vector<std::size_t> rows;
};

class NicRows {
 public:
  // Those of `rows` that are of the NIC.
  NicRows(std::string nic, const std::vector<Row>& rows);
  NicRows(const NicRows&) = delete;
  NicRows& operator=(const NicRows&) = delete;

  const std::string& nic() const { return nic_; }
  const std::vector<NicRow>& rows() const { return rows_; }
  std::vector<std::size_t> all() const;  // rows, for a Trial
  // The numbers of all rows, in their order.
  const std::vector<const Check*>& checks() const { return checks_; }

  // Of the NIC and of the hosts that the rows are in. What is not the same in all of these is not searched.
  Estimates estimates() const;
  bool can_be(const std::vector<std::string>& sets) const;
  // Of each trial the numbers of its rows by their place among all; of other rows 0. In child processes, up to `jobs`
  // at a time. std::runtime_error: a run failed.
  std::vector<std::vector<double>> run(const std::vector<Trial>& trials, unsigned jobs) const;

 private:
  std::string nic_;
  std::vector<NicRow> rows_;
  std::vector<const Check*> checks_;
};

}  // namespace rnicsim::sim::calibrate
