#include "patterns/cost/work.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "fmt/format.h"
#include "ir/attribute.h"

namespace ascend_fuse {
namespace {

constexpr Dim kZero = Dim::Of(0);
constexpr Dim kOne = Dim::Of(1);

const Fact& FactOfInput(const Node& node, size_t i, const Facts& facts) {
  static const Fact* const kNothing = new Fact;
  const Value* value = node.input(i);
  return value != nullptr ? facts.Of(value) : *kNothing;
}

const Fact& FactOfOutput(const Node& node, size_t i, const Facts& facts) {
  static const Fact* const kNothing = new Fact;
  const Value* value = node.output(i);
  return value != nullptr ? facts.Of(value) : *kNothing;
}

// Dim `axis`, from the end where it is negative; unknown where there is none.
Dim DimAt(const Fact& fact, int axis) {
  const int rank = fact.rank();
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? fact.shape[static_cast<size_t>(axis)] : Dim();
}

class Counter {
 public:
  Counter(const Node& node, const OperatorWork& row, Facts* facts)
      : node_(node), row_(row), facts_(*facts), dims_(facts->dims()) {}

  Work Count() {
    Work work;
    work.kind = row_.kind;
    work.scores = kZero;
    work.instructions = work.shortest = kZero;
    work.one_by_one_on = row_.one_by_one_on;
    work.cube_share = row_.cube_share;
    work.elements = row_.scatters ? Elements(In(2)) : Elements(Out(0));
    if (row_.kind == WorkKind::kView || row_.kind == WorkKind::kControl) {
      work.flops = work.bytes = work.float_bytes = kZero;
      return work;
    }
    work.flops = Flops();
    CountBytes(&work);
    if (row_.formula == WorkFormula::kScores) {
      work.scores = Scores();
      const AttentionForm form = FormOf();
      if (!form.has_heads || form.heads > form.tokens) work.shortest = dims_.Min(DimAt(In(0), form.tokens), Keys(form));
    }
    if (row_.instructions > 0) work.instructions = Times(row_.instructions, Elements(Out(0)));
    return work;
  }

 private:
  const Fact& In(size_t i) const { return FactOfInput(node_, i, facts_); }
  const Fact& Out(size_t i) const { return FactOfOutput(node_, i, facts_); }
  Dim Elements(const Fact& fact) { return ElementsOf(fact, &dims_); }
  Dim Times(int64_t number, Dim dim) { return number == 0 ? kZero : dims_.Mul(Dim::Of(number), dim); }

  Dim Flops() {
    Dim flops = Formula();
    if (row_.per_output > 0) flops = dims_.Add(flops, Times(row_.per_output, Elements(Out(0))));
    if (row_.per_input > 0) flops = dims_.Add(flops, Times(row_.per_input, Elements(In(0))));
    return flops;
  }

  Dim Formula() {
    switch (row_.formula) {
      case WorkFormula::kNone:
        return kZero;
      case WorkFormula::kProduct:
        return Product();
      case WorkFormula::kGeneralProduct:
        return GeneralProduct();
      case WorkFormula::kConvolution:
        return Convolution();
      case WorkFormula::kTransposedConvolution:
        return TransposedConvolution();
      case WorkFormula::kLetters:
        return Letters();
      case WorkFormula::kScores:
        return AttentionProducts();
      case WorkFormula::kRecurrence:
        return Recurrence();
      case WorkFormula::kTwoProducts:
        return TwoProducts();
    }
    return Dim();
  }

  Dim Product() { return Times(2, dims_.Mul(Elements(Out(0)), DimAt(In(0), -1))); }

  Dim TwoProducts() {
    Dim rows = In(0).has_rank ? kOne : Dim();
    for (int axis = 0; axis + 1 < In(0).rank(); ++axis) rows = dims_.Mul(rows, DimAt(In(0), axis));
    return Times(2, dims_.Mul(rows, dims_.Add(Elements(In(1)), Elements(In(2)))));
  }

  Dim GeneralProduct() {
    const bool transposed = IntAttribute(node_, "transA").value_or(0) != 0;
    const Dim flops = Times(2, dims_.Mul(Elements(Out(0)), DimAt(In(0), transposed ? 0 : 1)));
    return node_.input(2) != nullptr ? dims_.Add(flops, Elements(Out(0))) : flops;
  }

  // The weight is [out, in / groups, kernel...], and for the transposed one [in, out / groups, kernel...]. Operators with zero
  // points have the weight elsewhere.
  const Fact& Weight() const { return In(OpType(node_) == "QLinearConv" ? 3 : 1); }
  Dim Kernel() {
    const Fact& weight = Weight();
    Dim product = weight.has_rank ? kOne : Dim();
    for (int axis = 1; axis < weight.rank(); ++axis) product = dims_.Mul(product, DimAt(weight, axis));
    return product;
  }
  Dim Convolution() {
    const Dim flops = Times(2, dims_.Mul(Elements(Out(0)), Kernel()));
    return OpType(node_) == "Conv" && node_.input(2) != nullptr ? dims_.Add(flops, Elements(Out(0))) : flops;
  }
  Dim TransposedConvolution() {
    const Dim flops = Times(2, dims_.Mul(Elements(In(0)), Kernel()));
    return node_.input(2) != nullptr ? dims_.Add(flops, Elements(Out(0))) : flops;
  }

  // 2 * the product of all letters, where the dims of an ellipsis are letters too. Of a single operand nothing is multiplied.
  Dim Letters() {
    const auto equation = StringAttribute(node_, "equation");
    if (!equation.has_value()) return Dim();
    absl::flat_hash_map<char, Dim> letters;
    Dim product = kOne;
    size_t operand = 0;
    int axis = 0;
    for (const char c : equation->substr(0, equation->find('-'))) {
      if (c == ',') {
        ++operand;
        axis = 0;
      } else if (c == '.') {
        return EllipsisLetters(*equation);
      } else if (c != ' ') {
        if (letters.try_emplace(c, Dim()).second) product = dims_.Mul(product, DimAt(In(operand), axis));
        ++axis;
      }
    }
    return operand == 0 ? kZero : Times(2, product);
  }

  // With an ellipsis: the elements of the result times the letters that it does not have.
  Dim EllipsisLetters(std::string_view equation) {
    const size_t arrow = equation.find("->");
    if (arrow == std::string_view::npos) return Dim();
    const std::string_view result = equation.substr(arrow + 2);
    Dim product = Elements(Out(0));
    std::string seen(result);
    size_t operand = 0;
    std::string_view rest = equation.substr(0, arrow);
    while (!rest.empty()) {
      std::string letters;
      const std::string_view part = rest.substr(0, rest.find(','));
      for (const char c : part) {
        if (c != ' ') letters += c;
      }
      const size_t dots = letters.find("...");
      for (size_t i = 0; i < letters.size(); ++i) {
        if (letters[i] == '.' || seen.find(letters[i]) != std::string::npos) continue;
        seen += letters[i];
        const bool after = dots != std::string::npos && i > dots;
        const int axis = after ? static_cast<int>(i) - static_cast<int>(letters.size()) : static_cast<int>(i);
        product = dims_.Mul(product, DimAt(In(operand), axis));
      }
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      ++operand;
    }
    return operand < 2 ? kZero : Times(2, product);
  }

  // Where heads, tokens and channels stand in the operands of an attention.
  struct AttentionForm {
    bool has_heads = false;  // an axis of its own
    int tokens = 0;
    int heads = 0;
    int64_t head_count = 0;  // where there is no axis
  };
  AttentionForm FormOf() const {
    const auto layout = StringAttribute(node_, "input_layout");
    AttentionForm form;
    form.has_heads = In(0).rank() == 4;
    form.tokens = form.has_heads ? 2 : 1;
    form.heads = 1;
    if (layout.has_value() && layout->starts_with("BSND")) {
      form.tokens = 1;
      form.heads = 2;
    } else if (layout.has_value() && layout->starts_with("TND")) {
      form.has_heads = true;
      form.tokens = 0;
      form.heads = 1;
    }
    for (const char* name : {"num_heads", "q_num_heads", "head_num"}) {
      if (const auto heads = IntAttribute(node_, name); heads.has_value()) form.head_count = *heads;
    }
    return form;
  }
  // How many keys there are: with those of a cache, where the operator gives that back.
  Dim Keys(const AttentionForm& form) {
    const Fact& present = Out(1);
    const bool caches = Domain(node_) != "npu" && present.rank() == 4 && node_.output(1) != nullptr;
    return caches ? DimAt(present, 2) : DimAt(In(1), In(1).rank() == 4 || form.tokens == 0 ? form.tokens : 1);
  }
  Dim AttentionProducts() {
    const AttentionForm form = FormOf();
    return Times(2, dims_.Mul(Keys(form), dims_.Add(Elements(In(0)), Elements(Out(0)))));
  }
  Dim Scores() {
    const AttentionForm form = FormOf();
    const Fact& query = In(0);
    const Dim batch = form.tokens == 0 ? kOne : DimAt(query, 0);
    const Dim heads = form.has_heads ? DimAt(query, form.heads) : form.head_count > 0 ? Dim::Of(form.head_count) : Dim();
    return dims_.Mul(dims_.Mul(batch, heads), dims_.Mul(DimAt(query, form.tokens), Keys(form)));
  }

  // X is [steps, batch, in]; weights are [directions, gates * hidden, in] and [directions, gates * hidden, hidden].
  Dim Recurrence() {
    const Dim rows = dims_.Mul(DimAt(In(0), 0), DimAt(In(0), 1));
    return Times(2, dims_.Mul(rows, dims_.Add(Elements(In(1)), Elements(In(2)))));
  }

  void AddBytes(const Fact& fact, Work* work) {
    const Dim bytes = BytesOf(fact, &dims_);
    work->bytes = dims_.Add(work->bytes, bytes);
    if (fact.type == DataType::kFloat) work->float_bytes = dims_.Add(work->float_bytes, bytes);
  }

  void CountBytes(Work* work) {
    work->bytes = work->float_bytes = kZero;
    absl::InlinedVector<const Value*, 8> read;
    for (size_t i = 0; i < node_.input_count; ++i) {
      const Value* value = node_.input(i);
      if (value == nullptr || std::find(read.begin(), read.end(), value) != read.end()) continue;
      read.push_back(value);
      if (i == 0 && row_.reads_what_it_writes) {
        for (const Value* output : node_.outputs()) {
          if (output != nullptr) AddBytes(facts_.Of(output), work);
        }
      } else {
        AddBytes(facts_.Of(value), work);
      }
    }
    for (const Value* output : node_.outputs()) {
      if (output != nullptr) AddBytes(facts_.Of(output), work);
    }
  }

  const Node& node_;
  const OperatorWork& row_;
  Facts& facts_;
  DimTable& dims_;
};

}  // namespace

std::string WorkName(const Node& node) {
  const std::string_view domain = Domain(node);
  const std::string_view type = OpType(node);
  if (domain.empty()) return type.starts_with("NPU") ? fmt::format("npu.{}", type) : std::string(type);
  return fmt::format("{}.{}", domain, type);
}

namespace {

// number * the product of the shape: numbers are multiplied as numbers, so that each expression costs one product of the table.
Dim TimesElements(int64_t number, const Fact& fact, DimTable* dims) {
  if (!fact.has_rank) return Dim();
  Dim product = kOne;
  for (const Dim of_axis : fact.shape) {
    const Dim dim = dims->Resolve(of_axis);
    if (!dim.known()) return Dim();
    if (!dim.is_number()) {
      product = product.is(1) ? dim : dims->Mul(product, dim);
    } else if (__builtin_mul_overflow(number, dim.number(), &number)) {
      return Dim();
    }
  }
  if (product.is(1)) return Dim::Of(number);
  return number == 1 ? product : dims->Mul(Dim::Of(number), product);
}

}  // namespace

Dim ElementsOf(const Fact& fact, DimTable* dims) { return TimesElements(1, fact, dims); }

Dim BytesOf(const Fact& fact, DimTable* dims) {
  constexpr int64_t kBytesOfString = 16;
  const int bits = BitWidth(fact.type);
  if (bits == 0) return fact.type == DataType::kString ? TimesElements(kBytesOfString, fact, dims) : Dim();
  if (bits % 8 == 0) return TimesElements(bits / 8, fact, dims);
  return dims->FloorDiv(TimesElements(bits, fact, dims), Dim::Of(8));
}

Work WorkOf(const Node& node, Facts* facts) {
  static const OperatorWork kUnknown = {WorkKind::kVector, WorkFormula::kNone, 1, 0, false, false, 0, ""};
  const OperatorWork* row = FindOperatorWork(WorkName(node));
  Work work = Counter(node, row != nullptr ? *row : kUnknown, facts).Count();
  work.has_row = row != nullptr;
  return work;
}

}  // namespace ascend_fuse
