#include "passes/report/report_fields.h"

#include <vector>

#include "ir/text/visible.h"

namespace ascend_fuse {
namespace {

template <typename Record>
void MakeVisible(Record* record) {
  EachField(*record, [](const char*, auto& value) {
    using Type = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Type, std::string>) {
      value = Shown(value);
    } else if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
      for (std::string& item : value) item = Shown(item);
    }
  });
}

template <typename Record>
void MakeAllVisible(std::vector<Record>* records) {
  for (Record& record : *records) MakeVisible(&record);
}

}  // namespace

Report VisibleReport(const Report& report) {
  Report out = report;
  out.model = Shown(out.model);
  MakeVisible(&out.target);
  for (ReportKindCount& count : out.kinds) count.kind = Shown(count.kind);
  MakeAllVisible(&out.kinds);
  MakeAllVisible(&out.sites);
  MakeAllVisible(&out.near_misses);
  MakeAllVisible(&out.passes);
  MakeAllVisible(&out.contradictions);
  MakeAllVisible(&out.warnings);
  MakeAllVisible(&out.findings);
  MakeAllVisible(&out.adapted);
  MakeAllVisible(&out.tidied);
  MakeAllVisible(&out.gains);
  for (InputRecord& input : out.inputs) input.name = Shown(input.name);
  return out;
}

}  // namespace ascend_fuse
