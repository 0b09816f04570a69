// What the analysis of masks makes of the first output of each model, for tests/python/test_masks.py and bench/masks.py.
//
// A request is a line on standard input: the path of a model (.onnx or .onnxtxt) and, separated by tabs, what is assumed of
// inputs as INPUT=WORD. The answer is a line of JSON: the word of reports, the clauses with an expression of Python each,
// and what they rest on.
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/infer/facts.h"
#include "ir/onnx/load.h"
#include "ir/text/parser.h"
#include "patterns/analysis/mask_form.h"
#include "patterns/operators/inference.h"

namespace ascend_fuse {
namespace {

absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& path) {
  if (path.size() < 8 || path.compare(path.size() - 8, 8, ".onnxtxt") != 0) return LoadModel(path);
  std::ifstream file(path);
  return ParseModelText(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string List(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(Quoted(item));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

// The scores of the attention that the mask is of: its first input has the queries, ids [B, S], and its second output the
// keys, k [B, N, T, D]; [B, _, S, S] without such an output.
MaskForms::Scores ScoresOf(const Model& model, const Facts& facts) {
  const Fact& ids = facts.Of(model.graph().inputs()[0]);
  const bool keys = model.graph().outputs().size() > 1;
  if (ids.rank() != 2) return {};
  return {ids.shape[0], Dim(), ids.shape[1], keys ? facts.Of(model.graph().outputs()[1]).shape[2] : ids.shape[1]};
}

std::string Answer(const std::string& request) {
  std::istringstream fields(request);
  std::string path;
  std::getline(fields, path, '\t');
  std::vector<InputAssumption> assumptions;
  for (std::string field; std::getline(fields, field, '\t');) {
    const size_t equals = field.find('=');
    const auto kind = AssumptionFromName(field.substr(equals + 1));
    if (equals == std::string::npos || !kind.has_value()) return "{\"error\": \"no assumption\"}";
    assumptions.push_back({field.substr(0, equals), *kind});
  }
  auto model = Load(path);
  if (!model.ok()) return fmt::format("{{\"error\": {}}}", Quoted(std::string(model.status().message())));
  Facts facts = Infer(**model, WithDeclaredOperators());
  const ValueNumbering numbering(**model, facts);
  MaskForms forms(**model, facts, &facts.dims(), numbering, assumptions);
  const Value* mask = (*model)->graph().outputs()[0];
  const MaskForms::Scores scores = ScoresOf(**model, facts);
  const MaskForm& form = forms.Of(mask, scores);
  std::vector<std::string> clauses;
  for (const MaskClause& clause : form.clauses) clauses.push_back(forms.ToString(clause));
  const MaskClause* up_to = form.Find(MaskClause::Kind::kUpTo);
  return fmt::format(
      "{{\"word\": {}, \"understood\": {}, \"nothing\": {}, \"bias\": {}, \"offset\": {}, \"clauses\": {}, "
      "\"padding\": {}, \"assumptions\": {}}}",
      Quoted(MaskWord(form, scores[2], scores[3], facts.dims())), form.understood, form.nothing, form.bias,
      Quoted(up_to == nullptr ? "" : facts.dims().ToString(up_to->offset)), List(clauses), List(form.padding_inputs),
      List(form.assumptions));
}

}  // namespace
}  // namespace ascend_fuse

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << ascend_fuse::Answer(line) << std::endl;
  return 0;
}
