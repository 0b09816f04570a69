// A target: the rows that hold for a chip with a CANN version, and what they answer. How a row is decided is
// in judge.h; nothing about any chip is written in code.
#include "patterns/target/target.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"
#include "ir/data_type.h"
#include "ir/status_macros.h"
#include "patterns/target/judge.h"
#include "patterns/target/target_impl.h"
#include "proto/contract.pb.h"

namespace ascend_fuse {

using contract::CompiledNode;
using contract::CompiledRow;
using contract::Judge;
using contract::Viewed;

// What a CANN version does not give itself holds as its base gives it.
absl::Status Target::Impl::FindMode() {
  std::vector<std::string> modes;
  for (const auto& file : cann_files) {
    for (const proto::PrecisionMode& candidate : file.data->precision_mode()) {
      for (const std::string& word : candidate.name()) {
        modes.push_back(word);
        if (mode == nullptr && word == options.precision_mode) mode = &candidate;
      }
    }
    if (!modes.empty()) break;
  }
  if (mode != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("no precision mode is called {}; ATC's words are {}", options.precision_mode, fmt::join(modes, ", ")));
}

// Of a CANN version, or of a chip.
template <typename Files>
absl::Status Target::Impl::AddUnsupportedForms(const Files& of) {
  std::set<std::string> without;
  for (const auto& file : of) {
    for (const proto::UnsupportedForm& row : file.data->unsupported()) {
      if (without.count(row.code()) > 0) continue;
      if (file.is_users) {
        RETURN_IF_ERROR(contract::CheckForm(file.path, row));
      }
      unsupported.Add(row);
    }
    without.insert(file.data->without().begin(), file.data->without().end());
  }
  return absl::OkStatus();
}

void Target::Impl::ReadCann() {
  kernels = cann->kernels().empty() ? cann->version() : cann->kernels();
  for (const auto& file : cann_files) {
    const proto::CannFile& data = *file.data;
    if (!parses_npu_domain.has_value() && data.has_parses_npu_domain()) parses_npu_domain = data.parses_npu_domain();
    if (max_opset == 0) max_opset = data.max_opset();
    if (empty_input_in_branch == nullptr && data.has_empty_input_in_branch()) {
      empty_input_in_branch = &data.empty_input_in_branch();
    }
    for (const proto::Alias& alias : data.alias()) aliases.push_back(&alias);
    for (const proto::ParsedOperator& row : data.parsed()) unsupported.AddParsed(row, data.parsed_source());
  }
}

// The row `like` another one, in full; nullptr where the chip has no such node or refuses it.
absl::StatusOr<const proto::NodeContract*> Target::Impl::Like(const std::string& path, const proto::NodeContract& node) {
  if (!node.accepts().empty() || !node.row().empty() || node.has_refused()) {
    return absl::InvalidArgumentError(fmt::format("{}: node {}: `like` beside `accepts`, `row` or `refused`", path, node.op()));
  }
  // The row that holds for the other node: the first one, as in Compile.
  const proto::NodeContract* model = nullptr;
  for (const auto& opened : files) {
    const proto::TargetFile& file = *opened.data;
    for (const bool plugin : {true, false}) {
      for (const proto::NodeContract& other : file.node()) {
        if (other.op() != node.like() || other.plugin() != plugin || (plugin && !options.plugin)) continue;
        if (model == nullptr) model = &other;
      }
    }
    const auto& without = file.without();
    if (model == nullptr && std::find(without.begin(), without.end(), node.like()) != without.end()) return nullptr;
    if (model != nullptr) break;
  }
  if (model == nullptr || !model->like().empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: node {}: `like`: there is no node {} with rows of its own", path, node.op(), node.like()));
  }
  if (model->has_refused()) return nullptr;
  proto::NodeContract row = *model;
  for (const proto::AttributeRule& attribute : node.attribute()) {
    for (int i = row.attribute_size(); i-- > 0;) {
      if (row.attribute(i).name() == attribute.name()) row.mutable_attribute()->DeleteSubrange(i, 1);
    }
  }
  proto::NodeContract own = node;
  own.mutable_source()->MergeFrom(row.source());
  row.clear_source();
  row.MergeFrom(own);
  copies.push_back(std::move(row));
  return &copies.back();
}

absl::Status Target::Impl::AddNodes(const contract::OpenedFile<proto::TargetFile>& opened, const std::set<std::string>& without) {
  const proto::TargetFile& file = *opened.data;
  const std::string path = fmt::format("target {}", file.chip().empty() ? contract::kStock : file.chip());
  for (const bool plugin : {true, false}) {
    if (plugin && !options.plugin) continue;
    for (const proto::NodeContract& node : file.node()) {
      if (node.plugin() != plugin || nodes.count(node.op()) > 0 || without.count(node.op()) > 0) continue;
      // Of a chip whose kernels are not known, neither the plugin's rows hold nor what is said of them without it.
      if (plugin && other_nodes != nullptr) unknown_nodes.insert(node.op());
      if (unknown_nodes.count(node.op()) > 0) continue;
      const proto::NodeContract* data = &node;
      if (!node.like().empty()) {
        ASSIGN_OR_RETURN(auto copy, Like(path, node));
        if (copy == nullptr) continue;
        data = copy;
      }
      NodeRows& rows = nodes[data->op()];
      rows.path = path;
      rows.data = data;
      if (opened.is_users) {
        if (auto compiled = Compiled(&rows); !compiled.ok()) return compiled.status();
      }
      node_order.push_back(data->op());
    }
  }
  return absl::OkStatus();
}

absl::Status Target::Impl::AddFiles() {
  std::set<std::string> without;
  for (const auto& opened : files) {
    const proto::TargetFile& file = *opened.data;
    RETURN_IF_ERROR(AddNodes(opened, without));
    if (other_nodes == nullptr && file.has_other_nodes()) other_nodes = &file.other_nodes();
    for (const proto::LeftRow& row : file.left()) {
      for (const std::string& construct : row.construct()) {
        if (without.count(construct) == 0) left.emplace(construct, &row);
      }
    }
    for (const proto::StandardOp& row : file.standard()) standard.emplace(row.op(), &row);
    for (const proto::GeConstructRow& row : file.ge_construct()) {
      if (without.count(row.construct()) == 0) ge_constructs.emplace(row.construct(), &row);
    }
    without.insert(file.without().begin(), file.without().end());
  }
  for (const std::string& version : files[0].data->not_in_cann()) {
    if (version != cann->version()) continue;
    warnings.push_back(fmt::format("{}; name a newer one with --cann ({})", files[0].data->not_in_cann_because(),
                                   fmt::join(contract::CannNames(), ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<const CompiledNode*> Target::Impl::Compiled(NodeRows* rows) {
  const std::lock_guard<std::mutex> lock(compiling);
  if (!rows->is_compiled) {
    rows->is_compiled = true;
    absl::StatusOr<CompiledNode> compiled = contract::CompileNode(rows->path, *rows->data);
    if (compiled.ok()) {
      rows->compiled = *std::move(compiled);
    } else {
      rows->error = compiled.status();
    }
  }
  if (!rows->error.ok()) return rows->error;
  return &rows->compiled;
}

namespace {

// Whether float32 stands beside a half-precision type in one call: in a graph of ONNX an explicit Cast set them apart,
// and what a Cast made float32 no precision mode lowers.
bool MixesFloats(const Call& call) {
  bool wide = false;
  bool half = false;
  for (const CallInput& input : call.inputs) {
    if (!input.present) continue;
    wide = wide || input.type == DataType::kFloat;
    half = half || input.type == DataType::kFloat16 || input.type == DataType::kBfloat16;
  }
  return wide && half;
}

bool LowersFloat(const proto::PrecisionMode::View& view) {
  return std::any_of(view.change().begin(), view.change().end(),
                     [](const auto& change) { return change.type() == DataTypeName(DataType::kFloat); });
}

}  // namespace

// Why no row takes the types, in one sentence: about the first operand that fits none, or the combination.
std::string Target::Impl::TypeRefusal(const Call& call, const CompiledNode& node) const {
  const proto::PrecisionMode::View& view = mode->view(0);
  size_t operands = 0;
  for (const CompiledRow& row : node.rows) operands = std::max(operands, row.signature.inputs.size());
  for (size_t i = 0; i < operands && i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) continue;
    std::vector<std::string> wanted;
    std::string name;
    bool fits = false;
    for (const CompiledRow& row : node.rows) {
      if (i >= row.signature.inputs.size()) continue;
      const OperandPattern& operand = row.signature.inputs[i];
      name = operand.name;
      fits = fits || operand.types.empty();
      for (const DataType type : operand.types) {
        AddOnce(std::string(DataTypeName(type)), &wanted);
        for (const auto& other : mode->view()) fits = fits || Viewed(call.inputs[i].type, other) == type;
      }
    }
    if (fits) continue;
    std::string keeps;
    if (Viewed(call.inputs[i].type, view) == call.inputs[i].type && IsFloat(call.inputs[i].type)) {
      keeps = fmt::format(", and precision mode {} does not change it", options.precision_mode);
    }
    return fmt::format("{} is {}, {} takes {} on {}{}", name, DataTypeName(call.inputs[i].type), call.op,
                       contract::JoinOr(wanted), chip, keeps);
  }
  std::vector<std::string> types;
  for (const CallInput& input : call.inputs) {
    if (input.present) types.emplace_back(DataTypeName(input.type));
  }
  return fmt::format("({}) is not a combination of types that {} takes on {}{}", fmt::join(types, ", "), call.op, chip,
                     MixesFloats(call) ? ", and no precision mode lowers what a Cast made float" : "");
}

Target::Target(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Target::~Target() = default;
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;

absl::StatusOr<Target> Target::Load(const TargetOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (!options.style.empty() && options.style != "D" && options.style != "N" && options.style != "X") {
    return absl::InvalidArgumentError(
        fmt::format("no emission style is called {}; there are D (default-domain alias), N (npu domain) and X "
                    "(explicit ai.onnx domain)",
                    options.style));
  }
  ASSIGN_OR_RETURN(auto cann_files, contract::OpenCann(options.cann));
  impl->cann_files = std::move(cann_files);
  impl->cann = impl->cann_files[0].data.get();
  ASSIGN_OR_RETURN(auto files, contract::OpenChip(options.chip, options.plugin));
  impl->files = std::move(files);
  impl->chip = impl->files[0].data->chip();
  RETURN_IF_ERROR(impl->FindMode());
  impl->ReadCann();
  RETURN_IF_ERROR(impl->AddUnsupportedForms(impl->cann_files));
  RETURN_IF_ERROR(impl->AddFiles());
  RETURN_IF_ERROR(impl->AddUnsupportedForms(impl->files));
  return Target(std::move(impl));
}

absl::StatusOr<std::shared_ptr<const Target>> Target::Shared(const TargetOptions& options) {
  const auto load = [&options]() -> absl::StatusOr<std::shared_ptr<const Target>> {
    ASSIGN_OR_RETURN(Target loaded, Load(options));
    return std::make_shared<const Target>(std::move(loaded));
  };
  if (contract::IsPath(options.chip) || contract::IsPath(options.cann)) return load();  // it may be written anew meanwhile
  constexpr size_t kMostKept = 32;
  struct Kept {
    std::mutex mutex;
    std::deque<std::shared_ptr<const Target>> targets;  // the last one that was asked for stands last
  };
  static auto* const kept = new Kept;  // never destroyed: threads may outlive main's statics
  const std::lock_guard<std::mutex> lock(kept->mutex);
  auto& targets = kept->targets;
  const auto same = std::find_if(targets.begin(), targets.end(), [&](const auto& one) { return one->options() == options; });
  if (same != targets.end()) {
    std::rotate(same, same + 1, targets.end());
    return targets.back();
  }
  ASSIGN_OR_RETURN(auto target, load());
  targets.push_back(target);
  if (targets.size() > kMostKept) targets.pop_front();
  return target;
}

absl::Status Target::CheckData() const {
  for (auto& [op, rows] : impl_->nodes) {
    if (auto compiled = impl_->Compiled(&rows); !compiled.ok()) return compiled.status();
  }
  absl::Status status;
  const auto check = [&status](const auto& files) {
    for (const auto& file : files) {
      for (const proto::UnsupportedForm& row : file.data->unsupported()) {
        if (status.ok()) status = contract::CheckForm(file.path, row);
      }
    }
  };
  check(impl_->cann_files);
  check(impl_->files);
  return status;
}

const std::string& Target::chip() const { return impl_->chip; }
const std::string& Target::cann() const { return impl_->cann->version(); }
const TargetOptions& Target::options() const { return impl_->options; }
const std::vector<std::string>& Target::warnings() const { return impl_->warnings; }
bool Target::KeepsRange() const { return impl_->mode->keeps_range(); }

int64_t Target::MaxOpset() const { return impl_->max_opset; }

std::vector<std::string> Target::Nodes() const {
  std::vector<std::string> names;
  for (const std::string& op : impl_->node_order) {
    if (!impl_->nodes.at(op).data->has_refused()) names.push_back(op);
  }
  return names;
}

bool Target::HasNode(std::string_view op) const {
  const auto it = impl_->nodes.find(op);
  return it != impl_->nodes.end() && !it->second.data->has_refused();
}

Answer Target::Impl::Check(const Call& call, const DimTable& dims, DimTable* growing) {
  Answer answer;
  const auto it = nodes.find(call.op);
  if (it == nodes.end() && other_nodes != nullptr) {
    answer.code = "node-refused";
    answer.because = other_nodes->because();
    answer.source = other_nodes->source();
    return answer;
  }
  if (it == nodes.end()) {
    answer.code = "no-node";
    answer.because = fmt::format("{} is not in the contract of {}", call.op, chip);
    answer.source = fmt::format("patterns/targets/{}.txtpb", chip);
    return answer;
  }
  const proto::NodeContract& data = *it->second.data;
  if (data.has_refused()) {
    answer.code = "node-refused";
    answer.because = data.refused().because();
    answer.source = data.refused().source();
    return answer;
  }
  const absl::StatusOr<const CompiledNode*> compiled = Compiled(&it->second);
  if (!compiled.ok()) {
    answer.code = "node-refused";
    answer.because = std::string(compiled.status().message());
    answer.source = it->second.path;
    return answer;
  }
  const CompiledNode& node = **compiled;
  Judge judge(call, node, dims, growing, kernels);
  contract::Refusal refusal;
  if (judge.CheckAttributesAndPresence(&refusal)) {
    // Views in ATC's order of preference; of the rows that fit, the one that assumes least.
    const bool mixed = MixesFloats(call);
    for (const auto& view : mode->view()) {
      if (mixed && LowersFloat(view)) continue;
      for (const CompiledRow& row : node.rows) {
        std::vector<std::string> assumptions;
        if (!judge.CheckRow(row, view, &refusal, &assumptions)) continue;
        if (!answer.legal || assumptions.size() < answer.assumptions.size()) answer.assumptions = assumptions;
        answer.legal = true;
      }
      if (answer.legal && data.has_unsettled()) {
        answer.unsettled = data.unsettled().because();
        answer.assumptions.push_back(fmt::format("{}: {}", call.op, answer.unsettled));
      }
      if (answer.legal) return answer;
      if (mode->first_view_decides() && judge.types_fit()) break;
    }
  }
  answer.because = refusal.because.empty() ? TypeRefusal(call, node) : refusal.because;
  answer.code = refusal.because.empty() ? "types-refused" : refusal.code;
  answer.certain = !refusal.any_undecided;
  answer.source = refusal.source;
  if (answer.source.empty() && !data.source().empty()) answer.source = data.source(0);
  return answer;
}

Answer Target::Impl::CheckPlace(const Call& call, Answer answer) const {
  if (!answer.legal || !call.in_branch || empty_input_in_branch == nullptr) return answer;
  const auto first = std::find_if(call.inputs.begin(), call.inputs.end(), [](const CallInput& input) { return !input.present; });
  if (std::none_of(first, call.inputs.end(), [](const CallInput& input) { return input.present; })) return answer;
  Answer refused;
  refused.code = std::string(kEmptyInputInBranch);
  refused.because = fmt::format("{} would have an empty input {}, and {}", call.op, first - call.inputs.begin(),
                                empty_input_in_branch->because());
  refused.source = empty_input_in_branch->source();
  return refused;
}

Answer Target::Check(const Call& call, const DimTable& dims) const {
  return impl_->CheckPlace(call, impl_->Check(call, dims, nullptr));
}
Answer Target::Check(const Call& call, DimTable* dims) const { return impl_->CheckPlace(call, impl_->Check(call, *dims, dims)); }

std::optional<LeftReason> Target::EmptyInputInBranch() const {
  const proto::Refusal* row = impl_->empty_input_in_branch;
  if (row == nullptr) return std::nullopt;
  return LeftReason{row->because(), row->source(), std::string(kEmptyInputInBranch)};
}

std::optional<GeConstruct> Target::FusedByGe(std::string_view construct) const {
  const auto it = impl_->ge_constructs.find(construct);
  if (it == impl_->ge_constructs.end()) return std::nullopt;
  const proto::GeConstructRow& row = *it->second;
  return GeConstruct{row.because(), row.source(), row.static_shapes(), row.plain_linear(), row.computed_by(), row.last_opset()};
}

std::optional<LeftReason> Target::WhyLeft(std::string_view construct) const {
  const auto it = impl_->left.find(construct);
  if (it == impl_->left.end()) return std::nullopt;
  const proto::LeftRow& row = *it->second;
  return LeftReason{row.because(), row.source(), row.code().empty() ? "no-kernel" : row.code()};
}

std::optional<StandardOp> Target::Standard(std::string_view op, DataType type, int64_t opset, LeftReason* outside) const {
  const auto it = impl_->standard.find(op);
  if (it == impl_->standard.end()) return std::nullopt;
  const proto::StandardOp& row = *it->second;
  const auto& types = row.type();
  const bool parsed = opset >= row.first() && (row.last() == 0 || opset <= row.last());
  const bool taken = types.empty() || std::find(types.begin(), types.end(), DataTypeName(type)) != types.end();
  if (parsed && taken) return StandardOp{row.because(), row.source()};
  if (outside != nullptr && !parsed) {
    *outside = {fmt::format("{}; the model imports opset {}", row.because(), opset), row.source(), "opset-not-parsed"};
  } else if (outside != nullptr) {
    *outside = {fmt::format("the {} kernel takes {}, not {}", op, fmt::join(types, ", "), DataTypeName(type)), row.source(),
                "types-refused"};
  }
  return std::nullopt;
}

std::vector<const UnsupportedForm*> Target::UnsupportedForms(const Node& node, int64_t opset, const Facts* facts) const {
  const bool is_node = !IsParsed(OpType(node)) && HasAlias(fmt::format("npu.{}", OpType(node)), opset);
  return impl_->unsupported.Of(node, opset, MaxOpset(), is_node, facts);
}

bool Target::IsParsed(std::string_view op) const {
  return !impl_->unsupported.KnowsParsed() || impl_->unsupported.ParsedOf(op) != nullptr;
}

bool Target::ParsesNpuDomain() const { return impl_->parses_npu_domain.value_or(false); }

bool Target::HasAlias(std::string_view op, int64_t opset) const {
  const auto has = [&](const proto::Alias& alias) {
    if (std::find(alias.op().begin(), alias.op().end(), op) == alias.op().end()) return false;
    if (alias.last() > 0 && opset >= alias.first() && opset <= alias.last()) return true;
    return std::find(alias.opset().begin(), alias.opset().end(), opset) != alias.opset().end();
  };
  return std::any_of(impl_->aliases.begin(), impl_->aliases.end(), [&](const proto::Alias* alias) { return has(*alias); }) ||
         std::any_of(impl_->files.begin(), impl_->files.end(),
                     [&](const auto& file) { return std::any_of(file.data->alias().begin(), file.data->alias().end(), has); });
}

bool Target::HasNpuName(std::string_view op) const {
  return std::none_of(impl_->aliases.begin(), impl_->aliases.end(), [&](const proto::Alias* alias) {
    return alias->no_npu_name() && std::find(alias->op().begin(), alias->op().end(), op) != alias->op().end();
  });
}

bool Target::NeedsPlugin(std::string_view op) const {
  const auto it = impl_->nodes.find(op);
  return it != impl_->nodes.end() && it->second.data->plugin() && !it->second.data->has_refused();
}

int64_t Target::AliasOpset(const std::vector<std::string>& ops, int64_t opset) const {
  for (int64_t candidate = std::min(opset, MaxOpset()); candidate > 0; --candidate) {
    if (std::all_of(ops.begin(), ops.end(), [&](const std::string& op) { return HasAlias(op, candidate); })) {
      return candidate;
    }
  }
  return 0;
}

std::vector<std::string> Target::Chips() { return contract::ChipNames(); }
std::vector<std::string> Target::CannVersions() { return contract::CannNames(); }

}  // namespace ascend_fuse
