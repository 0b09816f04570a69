// Writes the rows of a model in the orders that were chosen, and ways between nodes that stay where they have more Transposes
// than they need.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/core/workspace.h"
#include "passes/layout/row_places.h"

namespace ascend_fuse {

class RowWriter {
 public:
  // `places` say which of them change.
  RowWriter(OrderRun& run, RowPlaces& places)
      : workspace_(run.workspace), of_ge_(run.of_ge), places_(places), ways_(places.ways()), forms_(places.forms()) {}

  absl::Status Write();

 private:
  bool IsBetterWritten(const Way& way);
  std::vector<Way*> WaysToTidy();
  void AddOtherWays(std::vector<Way*>* to_write);
  absl::StatusOr<bool> WritePlace(const RowPlace& place, const std::vector<Way*>& to_write);
  const Value* Provide(Way* way, const RowPlace& reader);
  std::pair<const Value*, std::optional<AxisList>> SourceOf(Way* way);
  std::optional<Term> FromSource(Way* way, const std::optional<AxisList>& to);
  const Value* PartOf(const Value* source, const Way& way);
  void WriteWay(Way* way);
  void WriteDims(Way* way);
  void WriteAsItWas(const RowPlace& place, const Value* result);

  Workspace& workspace_;
  NodesOfGe& of_ge_;
  RowPlaces& places_;
  RowWays& ways_;
  WayForms& forms_;
  absl::flat_hash_map<const Value*, const Value*> provided_;  // ends of ways with the batch first
  absl::flat_hash_map<std::pair<const Value*, int64_t>, std::vector<const Value*>> parts_;
};

}  // namespace ascend_fuse
