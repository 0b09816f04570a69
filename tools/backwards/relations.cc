#include "tools/backwards/relations.h"

#include <algorithm>

#include "fmt/format.h"

namespace ascend_fuse::backwards {

namespace {

bool RelateElementwise(Relations* r, const GraphNode& node) {
  const int output = node.outputs[0];
  std::vector<int> known;
  bool all = true;
  for (int input : node.inputs) {
    if (input == kUnknown || r->values()[static_cast<size_t>(input)].scalar) continue;
    if (r->Shaped(input)) {
      known.push_back(input);
    } else {
      all = false;
    }
  }
  if (all && !known.empty()) {
    std::vector<int> result;
    for (int input : known) {
      std::vector<int> dims = r->DimsOf(input);
      std::vector<int> longer = result;
      if (dims.size() > longer.size()) std::swap(dims, longer);
      const size_t offset = longer.size() - dims.size();
      for (size_t i = 0; i < dims.size(); ++i) {
        int& a = longer[offset + i];
        if (r->NumberOfDim(dims[i]) == 1) continue;
        if (r->NumberOfDim(a) == 1) {
          a = dims[i];
        } else if (!r->Join(a, dims[i])) {
          return false;
        }
      }
      result = longer;
    }
    return r->SetShape(output, result);
  }
  // Backwards: one operand takes the result's shape.
  if (r->Shaped(output) && known.empty()) {
    for (int input : node.inputs) {
      if (input == kUnknown || r->values()[static_cast<size_t>(input)].scalar) continue;
      return r->SetShape(input, r->DimsOf(output));
    }
  }
  return true;
}

std::vector<int64_t> Axes(const GraphNode& node, std::string_view name, size_t rank) {
  std::vector<int64_t> axes;
  const Parameter* parameter = node.Find(name);
  if (parameter == nullptr) return axes;
  if (parameter->kind == Parameter::Kind::kInts) axes = parameter->ints;
  if (parameter->kind == Parameter::Kind::kNumber) axes = {static_cast<int64_t>(parameter->number)};
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
  }
  return axes;
}

double NumberParameter(const GraphNode& node, std::string_view name, double otherwise) {
  const Parameter* parameter = node.Find(name);
  return parameter != nullptr && parameter->kind == Parameter::Kind::kNumber ? parameter->number : otherwise;
}

bool RelateTranspose(Relations* r, GraphNode* node) {
  const int x = node->inputs[0];
  const int y = node->outputs[0];
  const Parameter* perm = node->Find("perm");
  if (perm == nullptr || perm->kind != Parameter::Kind::kInts) {  // the axes from the last to the first
    for (const auto& [from, to] : {std::make_pair(x, y), std::make_pair(y, x)}) {
      if (!r->Shaped(from)) continue;
      const std::vector<int> dims = r->DimsOf(from);
      return r->SetShape(to, {dims.rbegin(), dims.rend()});
    }
    return true;
  }
  if (r->Shaped(x)) {
    const std::vector<int> in = r->DimsOf(x);
    if (in.size() != perm->ints.size()) return r->Fail("perm does not fit");
    std::vector<int> out;
    for (int64_t axis : perm->ints) out.push_back(in[static_cast<size_t>(axis)]);
    return r->SetShape(y, out);
  }
  if (r->Shaped(y)) {
    const std::vector<int> out = r->DimsOf(y);
    if (out.size() != perm->ints.size()) return r->Fail("perm does not fit");
    std::vector<int> in(out.size());
    for (size_t i = 0; i < out.size(); ++i) in[static_cast<size_t>(perm->ints[i])] = out[i];
    return r->SetShape(x, in);
  }
  return true;
}

bool RelateExpand(Relations* r, GraphNode* node) {
  const int x = node->inputs[0];
  const int y = node->outputs[0];
  r->MarkTarget(*node);
  if (!r->Shaped(x) || !r->Shaped(y)) return true;
  const std::vector<int> in = r->DimsOf(x);
  const std::vector<int> out = r->DimsOf(y);
  if (in.size() > out.size()) return r->Fail("Expand to a smaller rank");
  for (size_t i = 0; i < in.size(); ++i) {
    const int to = out[out.size() - in.size() + i];
    if (r->NumberOfDim(in[i]) != 1 && !r->Join(in[i], to)) return false;
  }
  return true;
}

bool RelateSqueeze(Relations* r, GraphNode* node) {
  const std::string& op = node->op;
  const int x = node->inputs[0];
  const int y = node->outputs[0];
  const bool adds = op == "Unsqueeze";
  const int wide = adds ? y : x;
  const int narrow = adds ? x : y;
  const Parameter* axes = node->Find("axes");
  if (axes == nullptr || axes->kind != Parameter::Kind::kInts) return true;
  if (r->Shaped(narrow) && !r->Shaped(wide)) {
    std::vector<int> dims = r->DimsOf(narrow);
    std::vector<int64_t> at = Axes(*node, "axes", dims.size() + axes->ints.size());
    std::sort(at.begin(), at.end());
    for (int64_t axis : at) {
      if (axis < 0 || axis > static_cast<int64_t>(dims.size())) return r->Fail("an axis beyond the rank");
      dims.insert(dims.begin() + axis, r->NewDim(1));
    }
    return r->SetShape(wide, dims);
  }
  if (r->Shaped(wide)) {
    std::vector<int> dims = r->DimsOf(wide);
    std::vector<int64_t> at = Axes(*node, "axes", dims.size());
    std::sort(at.rbegin(), at.rend());
    for (int64_t axis : at) {
      if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return r->Fail("an axis beyond the rank");
      if (!r->Assign(dims[static_cast<size_t>(axis)], 1)) return false;
      dims.erase(dims.begin() + axis);
    }
    return r->SetShape(narrow, dims);
  }
  return true;
}

bool RelateReduce(Relations* r, GraphNode* node) {
  const int x = node->inputs[0];
  const int y = node->outputs[0];
  if (!r->Shaped(x)) return true;
  std::vector<int> dims = r->DimsOf(x);
  std::vector<int64_t> axes = Axes(*node, "axes", dims.size());
  const bool keep = NumberParameter(*node, "keepdims", 1) != 0;
  if (axes.empty()) {
    for (size_t i = 0; i < dims.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  std::sort(axes.rbegin(), axes.rend());
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return r->Fail("an axis beyond the rank");
    if (keep) {
      dims[static_cast<size_t>(axis)] = r->NewDim(1);
    } else {
      dims.erase(dims.begin() + axis);
    }
  }
  return r->Settled(*node) || r->Settle(*node, r->SetShape(y, dims));
}

bool RelateParts(Relations* r, GraphNode* node) {
  const std::string& op = node->op;
  const int x = node->inputs[0];
  if (node->half == kUnknown) return true;
  const int part = node->outputs[0];
  for (size_t i = 1; op == "Split" && r->Shaped(part) && i < node->outputs.size(); ++i) {
    if (!r->SetShape(node->outputs[i], r->DimsOf(part))) return false;
  }
  const GraphNode* key = node;
  if (!r->RelateAxis(x, part, -1, [&](int whole, int channels) {
        r->Equation(key, {whole}, {channels}, node->parts);
        return true;
      })) {
    return false;
  }
  if (op != "Gather" || !r->Shaped(part)) return true;
  GraphValue& index = r->values()[static_cast<size_t>(node->inputs[1])];
  index.constant = true;
  index.element = [half = node->half, parts = node->parts, strided = node->strided](int64_t i, int64_t count) {
    return static_cast<double>(strided ? half + parts * i : half * count + i);
  };
  return r->SetShape(node->inputs[1], {r->DimsOf(part).back()});
}

bool RelateConcat(Relations* r, GraphNode* node) {
  const int y = node->outputs[0];
  int64_t axis = static_cast<int64_t>(NumberParameter(*node, "axis", 0));
  int shaped = kUnknown;
  for (int input : node->inputs) {
    if (r->Shaped(input)) shaped = input;
  }
  if (shaped == kUnknown) return true;
  std::vector<int> dims = r->DimsOf(shaped);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return r->Fail("an axis beyond the rank");
  const size_t at = static_cast<size_t>(axis);
  bool all = true;
  for (int input : node->inputs) {
    if (!r->Shaped(input)) {
      all = false;
      continue;
    }
    const std::vector<int> other = r->DimsOf(input);
    if (other.size() != dims.size()) return r->Fail("ranks differ");
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i != at && !r->Join(dims[i], other[i])) return false;
    }
  }
  if (!all) return true;
  std::vector<int> out = dims;
  if (!r->Shaped(y)) {
    out[at] = r->NewDim();
    if (!r->SetShape(y, out)) return false;
  } else {
    out[at] = r->DimsOf(y)[at];
    if (!r->SetShape(y, out)) return false;
  }
  std::vector<int> parts;
  for (int input : node->inputs) parts.push_back(r->DimsOf(input)[at]);
  if (r->IsFirst(*node)) r->sums().push_back({parts, out[at]});
  return true;
}

bool RelateAttention(Relations* r, GraphNode* node) {
  const int x = node->inputs[0];
  const int y = node->outputs[0];
  if (!r->Shaped(x)) return r->Shaped(y) ? r->SetShape(x, r->DimsOf(y)) : true;
  std::vector<int> out = r->DimsOf(x);
  {
    const int k = node->inputs[1];
    const int v = node->inputs[2];
    if (!r->Shaped(k) || !r->Shaped(v)) return true;
    out.back() = r->DimsOf(v).back();
    const std::vector<int> keys = r->DimsOf(k);
    if (out.size() == 4 && keys.size() == 4 && r->IsFirst(*node)) {
      r->Equate({out[1]}, {keys[1], r->NewDim()});
    }
    const int mask = node->inputs.size() > 3 ? node->inputs[3] : kUnknown;
    if (mask != kUnknown && !r->Shaped(mask) && keys.size() == 4 &&
        !r->SetShape(mask, {r->random().Chance(50) ? out[0] : r->NewDim(1), r->NewDim(1), out[2], keys[2]})) {
      return false;
    }
  }
  return r->SetShape(y, out);
}

bool RelateGemm(Relations* r, GraphNode* node) {
  const int x = node->inputs[0];
  const int y = node->outputs[0];
  const int w = node->inputs[1];
  const bool a = NumberParameter(*node, "transA", 0) != 0;
  const bool b = NumberParameter(*node, "transB", 0) != 0;
  if (!r->Shaped(x) && !r->SetShape(x, {r->NewDim(), r->NewDim()})) return false;
  if (r->DimsOf(x).size() != 2) return r->Fail("Gemm takes matrices");
  if (!r->Shaped(w)) {
    const int k = r->DimsOf(x)[a ? 0 : 1];
    if (!r->SetShape(w, b ? std::vector<int>{r->NewDim(), k} : std::vector<int>{k, r->NewDim()})) return false;
  }
  if (r->DimsOf(w).size() != 2) return r->Fail("Gemm takes matrices");
  if (!r->Join(r->DimsOf(x)[a ? 0 : 1], r->DimsOf(w)[b ? 1 : 0])) return false;
  const int n = r->DimsOf(w)[b ? 0 : 1];
  if (node->inputs.size() > 2 && node->inputs[2] != kUnknown && !r->Shaped(node->inputs[2]) && !r->SetShape(node->inputs[2], {n}))
    return false;
  return r->SetShape(y, {r->DimsOf(x)[a ? 1 : 0], n});
}

bool RelateByTable(Relations* r, const GraphNode& node, const OperandShapes& row) {
  std::map<char, int> letters;
  std::optional<std::vector<int>> any;
  std::vector<std::pair<int, std::string_view>> operands;
  for (size_t i = 0; i < row.inputs.size() && i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kUnknown) operands.emplace_back(node.inputs[i], row.inputs[i]);
  }
  for (int output : node.outputs) operands.emplace_back(output, row.output);
  for (const auto& [value, letter] : operands) {
    if (!r->Shaped(value)) continue;
    const std::vector<int> dims = r->DimsOf(value);
    const size_t star = letter.find('*');
    const size_t named = letter.size() - (star == std::string_view::npos ? 0 : 1);
    if (star == std::string_view::npos ? dims.size() != named : dims.size() < named) return r->Fail("a rank that does not fit");
    size_t at = 0;
    std::vector<int> middle;
    for (char c : letter) {
      if (c == '*') {
        for (size_t k = dims.size() - named; k > 0; --k) middle.push_back(dims[at++]);
      } else if (c == '1' || c == '#') {
        if (!r->Assign(dims[at++], c == '1' ? 1 : 64)) return false;
      } else {
        const auto [entry, fresh] = letters.try_emplace(c, dims[at]);
        if (!fresh && !r->Join(entry->second, dims[at])) return false;
        ++at;
      }
    }
    if (star == std::string_view::npos) continue;
    for (size_t k = 0; any.has_value() && k < middle.size(); ++k) {
      if (any->size() != middle.size()) return r->Fail("a rank that does not fit");
      if (!r->Join((*any)[k], middle[k])) return false;
    }
    any = middle;
  }
  for (const auto& [value, letter] : operands) {
    if (r->Shaped(value) || (letter.find('*') != std::string_view::npos && !any.has_value())) continue;
    std::vector<int> dims;
    for (char c : letter) {
      if (c == '*') {
        dims.insert(dims.end(), any->begin(), any->end());
      } else if (c == '1' || c == '#') {
        dims.push_back(r->NewDim(c == '1' ? 1 : 64));
      } else {
        if (letters.count(c) == 0) letters[c] = r->NewDim();
        dims.push_back(letters[c]);
      }
    }
    if (!r->SetShape(value, dims)) return false;
  }
  for (const auto& [letter, dim] : letters) {
    const auto large = letters.find(static_cast<char>(letter - 'a' + 'A'));
    if (letter >= 'a' && letter <= 'z' && large != letters.end()) r->Equation(&node, {large->second}, {dim}, 2);
  }
  for (const char* name : {"groups", "num_groups", "num_heads"}) {
    const double groups = NumberParameter(node, name, 0);
    if (groups > 0 && letters.count('C') > 0 && !r->Settled(node)) {
      r->Equation(&node, {letters['C']}, {r->NewDim()}, groups);
    }
  }
  return true;
}

bool RelateMatMul(Relations* r, const GraphNode& node) {
  const int a = node.inputs[0];
  const int b = node.inputs[1];
  const int y = node.outputs[0];
  if (r->Shaped(a) && !r->Shaped(b) && r->values()[static_cast<size_t>(b)].node == kUnknown && r->Waits(b)) {
    if (!r->SetShape(b, {r->DimsOf(a).back(), r->NewDim()})) return false;
  }
  if (!r->Shaped(a) || !r->Shaped(b)) return true;
  const std::vector<int> p = r->DimsOf(a);
  const std::vector<int> q = r->DimsOf(b);
  if (p.size() < 2 || q.size() < 2) return r->Fail("MatMul of vectors");
  if (!r->Join(p.back(), q[q.size() - 2])) return false;
  std::vector<int> out = p.size() >= q.size() ? p : q;
  out[out.size() - 2] = p[p.size() - 2];
  out[out.size() - 1] = q.back();
  for (size_t i = 3; i <= std::min(p.size(), q.size()); ++i) {
    const int u = p[p.size() - i];
    const int v = q[q.size() - i];
    if (r->NumberOfDim(u) == 1) {
      out[out.size() - i] = v;
    } else if (r->NumberOfDim(v) == 1) {
      out[out.size() - i] = u;
    } else if (!r->Join(u, v)) {
      return false;
    }
  }
  return r->SetShape(y, out);
}

}  // namespace

bool Relations::RelateAxis(int a, int b, int64_t axis, const std::function<bool(int, int)>& at_axis) {
  if (!Shaped(a) && !Shaped(b)) return true;
  const bool from_a = Shaped(a);
  std::vector<int> dims = DimsOf(from_a ? a : b);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size())) return Fail("an axis beyond the rank");
  const int to = from_a ? b : a;
  if (!Shaped(to)) {
    dims[static_cast<size_t>(axis)] = NewDim();
    if (!SetShape(to, dims)) return false;
    return at_axis(DimsOf(a)[static_cast<size_t>(axis)], DimsOf(b)[static_cast<size_t>(axis)]);
  }
  const std::vector<int> other = DimsOf(to);
  if (other.size() != dims.size()) return Fail("ranks differ");
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int64_t>(i) != axis && !Join(dims[i], other[i])) return false;
  }
  return at_axis(DimsOf(a)[static_cast<size_t>(axis)], DimsOf(b)[static_cast<size_t>(axis)]);
}

void Relations::Equation(const GraphNode* key, std::vector<int> left, std::vector<int> right, double factor) {
  if (IsFirst(*key)) Equate(std::move(left), std::move(right), factor);
}

bool Relations::Settle(const GraphNode& node, bool result) {
  if (result) b_.equations_of_.insert(&node);
  return result;
}

void Relations::MarkTarget(const GraphNode& node) {
  if (node.inputs.size() > 1 && node.inputs[1] != kUnknown && b_.values_[static_cast<size_t>(node.inputs[1])].node == kUnknown) {
    b_.values_[static_cast<size_t>(node.inputs[1])].target = true;
  }
}

bool Relations::Relate(GraphNode* node) {
  const std::string& op = node->op;
  if (node->inputs.empty()) return true;
  const int x = node->inputs[0];
  const int y = node->outputs[0];
  if (op == "Transpose") return RelateTranspose(this, node);
  if (op == "MatMul") return RelateMatMul(this, *node);
  if (op == "Reshape") {
    MarkTarget(*node);
    if (Shaped(x) && Shaped(y)) Equation(node, DimsOf(x), DimsOf(y));
    return true;
  }
  if (op == "Expand") return RelateExpand(this, node);
  if (op == "Unsqueeze" || op == "Squeeze") return RelateSqueeze(this, node);
  if (op.rfind("Reduce", 0) == 0) return RelateReduce(this, node);
  if (op == "Slice" || op == "Split" || (op == "Gather" && node->half != kUnknown)) return RelateParts(this, node);
  if (op == "ScatterND") {  // rows of the first axis, half of them
    if (Shaped(x) && !SetShape(y, DimsOf(x))) return false;
    if (Shaped(y) && !SetShape(x, DimsOf(y))) return false;
    const GraphNode* key = node;
    if (!RelateAxis(y, node->inputs[2], 0, [&](int whole, int rows) {
          Equation(key, {whole}, {rows}, 2);
          return true;
        })) {
      return false;
    }
    if (!Shaped(node->inputs[2]) || Shaped(node->inputs[1])) return true;
    GraphValue& rows = values()[static_cast<size_t>(node->inputs[1])];
    rows.constant = true;
    if (!rows.element) rows.element = [](int64_t i, int64_t) { return static_cast<double>(i); };
    return SetShape(node->inputs[1], {DimsOf(node->inputs[2]).front(), NewDim(1)});
  }
  if (op == "Concat") return RelateConcat(this, node);
  for (const OperandShapes& row : OperandTable()) {
    if (row.op != op || row.domain != node->domain) continue;
    if (row.attribute == "without positions") {
      if (node->inputs.size() > 3 && node->inputs[3] != kUnknown) continue;
    } else if (!row.attribute.empty() && NumberParameter(*node, row.attribute, 1) != row.number) {
      continue;
    }
    return RelateByTable(this, *node, row);
  }
  if (op == "Attention") return RelateAttention(this, node);
  if (op == "Gemm") return RelateGemm(this, node);
  if (node->schema != nullptr && node->schema->elementwise) return RelateElementwise(this, *node);
  if (op == "Softmax" || op == "LogSoftmax" || op == "Gelu" || op == "Swish" || node->inputs.size() == 1) {
    if (node->inputs.size() == 1 || op == "Softmax") {
      if (Shaped(x)) return SetShape(y, DimsOf(x));
      if (Shaped(y)) return SetShape(x, DimsOf(y));
    }
  }
  return true;
}

}  // namespace ascend_fuse::backwards
