// The table of hints, and the place where conditions look into it.
#include "tools/backwards/hints.h"

namespace ascend_fuse::backwards {

namespace {

constexpr FunctionHint kHints[] = {
    {"reduced", FunctionHint::Reduced},
    {"trailing_axes", FunctionHint::Last},
    {"norm_weight", FunctionHint::NormWeight},
    {"channel_weight", FunctionHint::Channels},
    {"per_channel", FunctionHint::PerChannel},
    {"constant", FunctionHint::Constant},
    {"all_are", FunctionHint::AllAre},
    {"negative_axes", FunctionHint::NegativeAxes},
    {"linear", FunctionHint::Linear},
    {"linear_input", FunctionHint::Linear},
    {"linear_weight", FunctionHint::Linear},
    {"both_linear", FunctionHint::BothLinear},
    {"merged_input", FunctionHint::BothLinear},
    {"gate_pair", FunctionHint::GatePair},
    {"in_place_safe", FunctionHint::InPlaceSafe},
    {"rotation", FunctionHint::Rotation},
    {"pair_rotation", FunctionHint::PairRotation},
    {"written_rotation", FunctionHint::WrittenRotation},
    {"joined_source", FunctionHint::Whole},
    {"part_rotation", FunctionHint::PartRotation},
    {"rotary_table", FunctionHint::OneShape},
    {"matrix_table", FunctionHint::OneShape},
    {"rotary_mode", FunctionHint::RotaryMode},
    {"half", FunctionHint::Half},
    {"same_shape", FunctionHint::SameShape},
    {"broadcasts_to", FunctionHint::BroadcastsTo},
    {"attention_plan", FunctionHint::AttentionPlan},
};

}  // namespace

bool Builder::ByFunction(PendingCondition* pending) {
  return ByFunction(pending, pending->condition->left) && ByFunction(pending, pending->condition->right);
}

bool Builder::ByFunction(PendingCondition* pending, const Expression& expression) {
  if (expression.kind == Expression::Kind::kCall && hinted_.count({pending, &expression}) == 0) {
    for (const FunctionHint& hint : kHints) {
      if (hint.name != expression.text) continue;
      std::vector<int> operands;
      for (const Expression& argument : expression.arguments) operands.push_back(ValueOf(argument, pending->frame));
      bool done = false;
      if (!hint.apply(this, pending, expression, operands, &done)) return false;
      if (done) hinted_.insert({pending, &expression});
    }
  }
  for (const Expression& argument : expression.arguments) {
    if (!ByFunction(pending, argument)) return false;
  }
  return true;
}
}  // namespace ascend_fuse::backwards
