#include "passes/layout/taken_orders.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "fmt/format.h"
#include "passes/core/call_of.h"

namespace ascend_fuse {
namespace {

// A number or an enumerator; a std::string is a text, below.
template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
void Add(Number number, std::string* key) {
  key->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void Add(std::string_view text, std::string* key) {
  Add(text.size(), key);
  key->append(text);
}

// All that a target sees of a call, as bytes: two calls with the same bytes have the same answer. Attributes of Ascend nodes are
// numbers and words.
std::string KeyOf(const Call& call, const DimTable& dims) {
  std::string key;
  Add(call.op, &key);
  Add(call.in_branch, &key);
  Add(call.inputs.size(), &key);
  for (const CallInput& input : call.inputs) {
    Add(input.present, &key);
    Add(input.type, &key);
    Add(input.has_rank, &key);
    Add(input.shape.size(), &key);
    for (const Dim dim : input.shape) {
      const Dim known = dims.Resolve(dim);
      Add(known.id(), &key);
      Add(known.is_number(), &key);
      Add(known.known(), &key);
    }
  }
  for (const Attribute& attribute : call.attributes) {
    Add(attribute.name, &key);
    Add(attribute.type, &key);
    Add(attribute.i, &key);
    Add(attribute.f, &key);
    Add(attribute.s, &key);
  }
  return key;
}

}  // namespace

const TakenOrders::Known& TakenOrders::Ask(const Call& call) {
  const auto [entry, is_new] = known_.try_emplace(KeyOf(call, facts_.dims()));
  if (is_new) {
    Answer answer = target_.Check(call, &facts_.dims());
    entry->second = {answer.legal, std::move(answer.assumptions)};
  }
  return entry->second;
}

bool TakenOrders::Takes(const Node& node, const std::vector<size_t>& operands, const ExchangedAxes& axes,
                        std::string_view input_layout) {
  if (Domain(node) != "npu") return true;
  const Call as_it_is = CallOf(node, facts_, fmt::format("npu.{}", OpType(node)));
  Call call = as_it_is;
  for (const size_t i : operands) {
    std::swap(call.inputs[i].shape[static_cast<size_t>(axes.first)], call.inputs[i].shape[static_cast<size_t>(axes.second)]);
  }
  for (Attribute& attribute : call.attributes) {
    if (attribute.name == "input_layout" && !input_layout.empty()) {
      attribute = Attribute::String("input_layout", input_layout);
    }
  }
  return TakesAs(as_it_is, call);
}

bool TakenOrders::TakesAs(const Call& before, const Call& after) {
  const Known known = Ask(after);
  if (!known.legal || known.assumptions.empty()) return known.legal;
  const std::vector<std::string>& assumed = Ask(before).assumptions;
  return std::all_of(known.assumptions.begin(), known.assumptions.end(),
                     [&](const std::string& one) { return std::find(assumed.begin(), assumed.end(), one) != assumed.end(); });
}

}  // namespace ascend_fuse
