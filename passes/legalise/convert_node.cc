#include "passes/legalise/convert_node.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

absl::Status Cannot(const std::string& clause) { return absl::FailedPreconditionError(clause); }

// Versions whose difference does not show in the names of parameters (onnx/onnx:docs/Changelog.md). A row says from which
// version on the operator means something else than before.
struct NewMeaning {
  std::string_view op;
  int since;
  std::string_view what;
};
constexpr NewMeaning kNewMeanings[] = {
    {"AveragePool", 19, "rounds the last window of ceil_mode in another way"},
    {"AveragePool", 22, "rounds the last window of ceil_mode in another way"},
    {"DFT", 20, "counts its axis in another way"},
    {"GridSample", 20, "has other words for mode"},
    {"GroupNormalization", 21, "has a weight for each channel, not for each group"},
    {"MaxPool", 22, "rounds the last window of ceil_mode in another way"},
    {"OptionalGetElement", 18, "takes what is not an optional, too,"},
    {"OptionalHasElement", 18, "takes what is not an optional, or nothing, too,"},
    {"RoiAlign", 16, "takes other coordinates"},
    {"Upsample", 10, "is deprecated"},
};

// Words of attributes that a version brought, or took away.
struct NewWord {
  std::string_view op;
  std::string_view attribute;
  std::string_view word;
  int since;
  bool gone = false;
};
constexpr NewWord kNewWords[] = {
    {"Pad", "mode", "wrap", 19},
    {"Resize", "coordinate_transformation_mode", "tf_half_pixel_for_nn", 13, true},
    {"Resize", "coordinate_transformation_mode", "half_pixel_symmetric", 19},
    {"ScatterElements", "reduction", "max", 18},
    {"ScatterElements", "reduction", "min", 18},
    {"ScatterND", "reduction", "max", 18},
    {"ScatterND", "reduction", "min", 18},
};

// The opset at which the operator came to take what `takes` asks for, on the way down from `old`, or ceased to, on the way up.
template <typename Takes>
int64_t WhereItChanges(const Schema& old, const Schema& other, Takes takes) {
  int64_t first = 0;
  for (const Schema& version : SchemaVersions("", old.op_type)) {
    const bool above = version.since_version > old.since_version;
    if (above && !takes(version)) return version.since_version;
    if (!above) first = !takes(version) ? 0 : first == 0 ? version.since_version : first;
    if (version.since_version == old.since_version && other.since_version < old.since_version) break;
  }
  return first > 0 ? first : old.since_version;
}

// A type that the other version does not take. What is not known of a value is taken for what both do.
absl::Status CheckTypes(const Node& node, const Schema& old, const Schema& other, const Facts& facts) {
  const auto check = [&](const Value* value, const auto& types_of) -> absl::Status {
    const DataType type = value == nullptr ? DataType::kUndefined : facts.Of(value).type;
    const auto takes = [&](const Schema& version) {
      const TypeSet* types = types_of(version);
      return types == nullptr || types->Takes(type);
    };
    if (type == DataType::kUndefined || takes(other)) return absl::OkStatus();
    const int64_t changes = WhereItChanges(old, other, takes);
    return Cannot(other.since_version < old.since_version
                      ? fmt::format("does not take {} before opset {}", DataTypeName(type), changes)
                      : fmt::format("takes no {} from opset {} on", DataTypeName(type), changes));
  };
  for (size_t i = 0; i < node.input_count; ++i) {
    // All inputs after the last one that is named are of its kind.
    const size_t place = std::min(i, old.inputs.empty() ? 0 : old.inputs.size() - 1);
    const auto types_of = [&](const Schema& version) -> const TypeSet* {
      const int named = version.FindInput(old.inputs[place].name);
      const bool renamed = named < 0 && version.inputs.size() == old.inputs.size();  // and no attribute
      return named >= 0 ? &version.inputs[static_cast<size_t>(named)].types : renamed ? &version.inputs[place].types : nullptr;
    };
    if (old.inputs.empty()) break;
    RETURN_IF_ERROR(check(node.input(i), types_of));
  }
  for (size_t i = 0; i < node.output_count; ++i) {
    const auto types_of = [&](const Schema& version) -> const TypeSet* {
      return version.outputs.empty() ? nullptr : &version.outputs[std::min(i, version.outputs.size() - 1)].types;
    };
    RETURN_IF_ERROR(check(node.output(i), types_of));
  }
  return absl::OkStatus();
}

// Whether every element of a shift is one by fewer bits than the shifted numbers have.
bool ShiftsWithin(const Node& node, const Facts& facts) {
  const Fact& by = facts.Of(node.input(1));
  const int bits = BitWidth(by.type);
  return by.elements != nullptr && std::all_of(by.elements->integers.begin(), by.elements->integers.end(),
                                               [&](Dim n) { return n.is_number() && n.number() >= 0 && n.number() < bits; });
}

bool SameValue(const Attribute& a, const Attribute& b) {
  return a.type == b.type && a.i == b.i && a.f == b.f && a.s == b.s && a.ints == b.ints && a.floats == b.floats &&
         a.strings == b.strings && a.type != AttributeType::kTensor && a.type != AttributeType::kGraph;
}

// What two versions mean differently, whatever the parameters are called.
absl::Status CheckMeaning(const Node& node, const Schema& a, const Schema& b, const Facts& facts) {
  const int low = std::min(a.since_version, b.since_version);
  const int high = std::max(a.since_version, b.since_version);
  for (const NewMeaning& row : kNewMeanings) {
    if (row.op != a.op_type || low >= row.since || high < row.since) continue;
    const bool rounds = a.op_type == "AveragePool" || a.op_type == "MaxPool";
    if (rounds && IntAttribute(node, "ceil_mode").value_or(0) == 0) continue;
    return Cannot(fmt::format("{} from opset {} on", row.what, row.since));
  }
  for (const NewWord& row : kNewWords) {
    if (row.op != a.op_type || low >= row.since || high < row.since) continue;
    if (StringAttribute(node, row.attribute).value_or("") != row.word) continue;
    if (row.gone) return Cannot(fmt::format("knows the {} {} before opset {} only", row.attribute, row.word, row.since));
    return Cannot(fmt::format("knows the {} {} from opset {} on", row.attribute, row.word, row.since));
  }
  if (a.op_type == "Mod" && low < 28 && high >= 28 && IntAttribute(node, "fmod").value_or(0) == 0 &&
      IsFloat(facts.Of(node.input(0)).type)) {
    return Cannot("has fmod = 0 for integers only before opset 28");
  }
  if (a.op_type == "BitShift" && low < 28 && high >= 28 && !ShiftsWithin(node, facts)) {
    return Cannot("does not say before opset 28 what a shift by all bits gives");
  }
  // Before opset 13 all axes from `axis` on were one.
  const bool softmax = a.op_type == "Softmax" || a.op_type == "LogSoftmax" || a.op_type == "Hardmax";
  if (softmax && low < 13 && high >= 13) {
    const int rank = node.input(0) != nullptr ? facts.Of(node.input(0)).rank() : -1;
    const int64_t axis = IntAttribute(node, "axis").value_or(a.since_version < 13 ? 1 : -1);
    if (rank < 0 || (axis != -1 && axis != rank - 1)) return Cannot("took all axes from axis on as one before opset 13");
  }
  if (a.op_type == "Dropout" && low < 12 && high >= 12 && node.output(1) != nullptr) {
    return Cannot("does not say before opset 12 what the mask of an inference is");
  }
  if (a.op_type == "BatchNormalization" && low < 14 && high >= 14 && node.output_count > 1) {
    return Cannot("has other outputs in training before opset 14");
  }
  return absl::OkStatus();
}

// The constant that an attribute becomes where the other version has an input.
absl::StatusOr<NodeConversion::Input> AsInput(const Node& node, const Attribute& attribute, const Facts& facts) {
  NodeConversion::Input input;
  const DataType floats = node.input(0) != nullptr ? facts.Of(node.input(0)).type : DataType::kUndefined;
  if (attribute.type == AttributeType::kInts) {
    input.type = DataType::kInt64;
    input.dims = {static_cast<int64_t>(attribute.ints.size())};
    for (const int64_t number : attribute.ints) input.bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  } else if (attribute.type == AttributeType::kInt) {
    input.type = DataType::kInt64;
    if (attribute.name == "k") input.dims = {1};  // TopK
    input.bytes.assign(reinterpret_cast<const char*>(&attribute.i), sizeof attribute.i);
  } else if (attribute.type == AttributeType::kFloat && IsFloat(floats)) {
    input.type = attribute.name == "ratio" ? DataType::kFloat : floats;
    input.bytes = EncodeNumber(input.type, static_cast<double>(attribute.f));
  } else {
    return Cannot(fmt::format("has {} as an input there", attribute.name));
  }
  return input;
}

// The attribute that an input becomes where the other version has one.
absl::StatusOr<Attribute> AsAttribute(const Value& value, const SchemaAttribute& row, const Facts& facts) {
  const Fact& fact = facts.Of(&value);
  const auto cannot = [&] {
    return Cannot(fmt::format("has {} as an attribute there, and {} is not a constant", row.name, ValueName(value)));
  };
  if (fact.elements == nullptr) return cannot();
  std::vector<int64_t> integers;
  for (const Dim dim : fact.elements->integers) {
    if (!dim.is_number()) return cannot();
    integers.push_back(dim.number());
  }
  switch (row.type) {
    case AttributeType::kInts:
      return Attribute::Ints(row.name, integers);
    case AttributeType::kInt:
      if (integers.size() == 1) return Attribute::Int(row.name, integers[0]);
      break;
    case AttributeType::kFloat:
      if (fact.elements->floats.size() == 1) return Attribute::Float(row.name, static_cast<float>(fact.elements->floats[0]));
      break;
    default:
      break;
  }
  return cannot();
}

class Writer {
 public:
  Writer(const Node& node, const Schema& from, const Schema& to, const Facts& facts)
      : node_(node), from_(from), to_(to), facts_(facts) {}

  absl::StatusOr<std::optional<NodeConversion>> Run() {
    if (node_.output_count > to_.outputs.size() && to_.outputs.size() != 1) {
      return Cannot(fmt::format("has {} outputs there", to_.outputs.size()));
    }
    RETURN_IF_ERROR(Inputs());
    RETURN_IF_ERROR(Attributes());
    RETURN_IF_ERROR(Defaults());
    if (!changed_) return std::nullopt;
    auto& inputs = result_.inputs;
    while (!inputs.empty() && inputs.back().value == nullptr && inputs.back().type == DataType::kUndefined) inputs.pop_back();
    return result_;
  }

 private:
  absl::Status Inputs() {
    const bool variadic = !from_.inputs.empty() && from_.inputs.back().variadic;
    // BatchNormalization calls the same inputs by other names.
    const bool by_place = variadic || from_.op_type == "BatchNormalization";
    for (size_t i = 0; i < node_.input_count; ++i) {
      const Value* value = node_.input(i);
      if (by_place) {
        Put(i, {value, DataType::kUndefined, {}, {}});
        continue;
      }
      if (value == nullptr) continue;
      if (i >= from_.inputs.size()) return Cannot("has more inputs than ONNX knows");
      const std::string_view name = from_.inputs[i].name;
      // A reduction over an empty list of axes is one over all axes, unless it is told to do nothing.
      if (name == "axes" && Reduces() && IsEmpty(*value)) {
        if (IntAttribute(node_, "noop_with_empty_axes").value_or(0) != 0) return Cannot("has no axes and does nothing");
        changed_ = true;
        continue;
      }
      if (name == "scales" && HasTwoSizes()) {
        if (!IsEmpty(*value)) return Cannot("has scales or sizes there, and it is not known which of them is given");
        changed_ = true;
        continue;
      }
      if (const int place = to_.FindInput(name); place >= 0) {
        changed_ = changed_ || static_cast<size_t>(place) != i;
        Put(static_cast<size_t>(place), {value, DataType::kUndefined, {}, {}});
        continue;
      }
      const SchemaAttribute* row = to_.FindAttribute(name);
      if (row == nullptr) return Cannot(fmt::format("has no input {} there", name));
      ASSIGN_OR_RETURN(Attribute attribute, AsAttribute(*value, *row, facts_));
      result_.attributes.push_back(std::move(attribute));
      changed_ = true;
    }
    return absl::OkStatus();
  }

  absl::Status Attributes() {
    for (Attribute& attribute : ReadAttributes(node_)) {
      if (!attribute.ref_attr_name.empty()) return Cannot("takes attributes of a function");
      if (to_.FindAttribute(attribute.name) != nullptr) {
        result_.attributes.push_back(std::move(attribute));
        continue;
      }
      const SchemaAttribute* row = from_.FindAttribute(attribute.name);
      changed_ = true;
      // Where axes are named, it says nothing.
      if (attribute.name == "noop_with_empty_axes" && NamesAxes()) continue;
      if (const int place = to_.FindInput(attribute.name); place >= 0) {
        ASSIGN_OR_RETURN(NodeConversion::Input input, AsInput(node_, attribute, facts_));
        if (static_cast<size_t>(place) < node_.input_count && node_.input(static_cast<size_t>(place)) != nullptr) {
          return Cannot(fmt::format("has {} twice", attribute.name));
        }
        Put(static_cast<size_t>(place), std::move(input));
        continue;
      }
      if (row != nullptr && row->has_default && SameValue(row->default_value, attribute)) continue;
      return Cannot(fmt::format("has no {} there", attribute.name));
    }
    return absl::OkStatus();
  }

  // What is not written has the default of one version before and of the other one afterwards.
  absl::Status Defaults() {
    const auto written = [this](std::string_view name) {
      return std::any_of(result_.attributes.begin(), result_.attributes.end(),
                         [&](const Attribute& attribute) { return attribute.name == name; });
    };
    // A Split into equal parts counts its outputs, and from opset 18 on says so.
    const bool counts = to_.FindAttribute("num_outputs") != nullptr && from_.FindAttribute("num_outputs") == nullptr;
    if (from_.op_type == "Split" && counts && result_.inputs.size() < 2) {
      result_.attributes.push_back(Attribute::Int("num_outputs", static_cast<int64_t>(node_.output_count)));
      changed_ = true;
    }
    for (const SchemaAttribute& row : to_.attributes) {
      if (written(row.name)) continue;
      const SchemaAttribute* before = from_.FindAttribute(row.name);
      if (row.required && (before == nullptr || !before->has_default)) return Cannot(fmt::format("needs {} there", row.name));
      if (before == nullptr || !before->has_default) continue;
      if (row.has_default && SameValue(row.default_value, before->default_value)) continue;
      result_.attributes.push_back(before->default_value);
      changed_ = true;
    }
    return absl::OkStatus();
  }

  void Put(size_t place, NodeConversion::Input input) {
    if (result_.inputs.size() <= place) result_.inputs.resize(place + 1);
    result_.inputs[place] = std::move(input);
  }

  // Before opset 13 a Resize with sizes has scales without elements, and later none.
  bool HasTwoSizes() const {
    const int sizes =
        from_.op_type == "Resize" && from_.since_version < 13 && to_.since_version >= 13 ? from_.FindInput("sizes") : -1;
    return sizes >= 0 && static_cast<size_t>(sizes) < node_.input_count && node_.input(static_cast<size_t>(sizes)) != nullptr;
  }

  bool Reduces() const { return from_.op_type.substr(0, 6) == "Reduce"; }

  bool NamesAxes() const {
    const int place = from_.FindInput("axes");
    const Value* axes = place < 0 ? nullptr : node_.input(static_cast<size_t>(place));
    const Fact* fact = axes == nullptr ? nullptr : &facts_.Of(axes);
    return fact != nullptr && fact->has_rank && fact->rank() == 1 && fact->shape[0].is_number() && !fact->shape[0].is(0);
  }

  bool IsEmpty(const Value& value) const {
    const Fact& fact = facts_.Of(&value);
    return fact.has_rank && fact.rank() == 1 && fact.shape[0].is(0);
  }

  const Node& node_;
  const Schema& from_;
  const Schema& to_;
  const Facts& facts_;
  NodeConversion result_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<std::optional<NodeConversion>> ConvertNode(const Node& node, int64_t from, int64_t to, const Facts& facts) {
  const Schema* old = FindSchema("", OpType(node), from);
  const Schema* other = FindSchema("", OpType(node), to);
  if (std::max(from, to) > NewestOpset()) {
    return Cannot(
        fmt::format("may mean something else at opset {}: ONNX is known here up to opset {}", std::max(from, to), NewestOpset()));
  }
  if (old == nullptr) return Cannot("is not an operator of ONNX");
  if (other == nullptr) return Cannot(fmt::format("is not there at opset {}", to));
  if (old->since_version == other->since_version) return std::nullopt;
  if (other->deprecated) return Cannot(fmt::format("is deprecated at opset {}", to));
  RETURN_IF_ERROR(CheckTypes(node, *old, *other, facts));
  RETURN_IF_ERROR(CheckMeaning(node, *old, *other, facts));
  return Writer(node, *old, *other, facts).Run();
}

const Node* Write(const NodeConversion& conversion, const Node& node, Rewriter* rewriter) {
  NewNode plan;
  plan.op_type = std::string(OpType(node));
  plan.name = std::string(NodeName(node));
  plan.keep_name = !plan.name.empty();
  plan.attributes = conversion.attributes;
  const std::string base(Label(node));
  for (const NodeConversion::Input& input : conversion.inputs) {
    plan.inputs.push_back(input.type == DataType::kUndefined
                              ? input.value
                              : rewriter->Constant(node.graph, input.type, input.dims, input.bytes, base + "_constant"));
  }
  const Node* const written = node.dead     ? rewriter->ReplaceWaiting(node, plan)
                              : node.is_new ? rewriter->ReplaceMade(node, plan)
                                            : rewriter->ReplaceNode(node, plan);
  rewriter->CopyNotes(node, written);
  return written;
}

}  // namespace ascend_fuse
