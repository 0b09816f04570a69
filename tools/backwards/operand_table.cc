#include "tools/backwards/operand_table.h"

namespace ascend_fuse::backwards {

const std::vector<OperandShapes>& OperandTable() {
  static const auto* const kTable = new std::vector<OperandShapes>{
      {"", "LayerNormalization", {"*D", "D", "D"}, "*D"},
      {"", "RMSNormalization", {"*D", "D"}, "*D"},
      {"", "SimplifiedLayerNormalization", {"*D", "D"}, "*D"},
      {"", "InstanceNormalization", {"NCL*", "C", "C"}, "NCL*"},
      {"", "GroupNormalization", {"NCL*", "C", "C"}, "NCL*"},
      {"", "BatchNormalization", {"NC*", "C", "C", "C", "C"}, "NC*"},
      {"", "Conv", {"NCHW", "MC11", "M"}, "NMHW"},
      {"", "RotaryEmbedding", {"BNSD", "BSd", "BSd"}, "BNSD", "without positions"},
      {"", "RotaryEmbedding", {"BNSD", "#d", "#d", "BS"}, "BNSD"},
      {"com.microsoft", "RotaryEmbedding", {"BNSD", "BS", "#d", "#d"}, "BNSD"},
      {"com.microsoft", "BiasGelu", {"*D", "D"}, "*D"},
      {"com.microsoft", "FastGelu", {"*D", "D"}, "*D"},
      {"com.microsoft", "BiasSplitGelu", {"BSD", "D"}, "BSd"},
      {"com.microsoft", "GemmFastGelu", {"*K", "KN", "N"}, "*N"},
      {"com.microsoft", "FusedGemm", {"MK", "KN", "N"}, "MN"},
      {"com.microsoft", "MultiHeadAttention", {"BSC", "BTC", "BTC", "C", "BT", "11ST"}, "BSC"},
      {"com.microsoft", "SkipLayerNormalization", {"BSD", "BSD", "D", "D", "D"}, "BSD", "", 0, 17},
      {"com.microsoft", "SkipSimplifiedLayerNormalization", {"BSD", "BSD", "D", "D"}, "BSD"},
      {"com.microsoft", "GroupNorm", {"NHWC", "C", "C"}, "NHWC", "channels_last", 1},
      {"com.microsoft", "GroupNorm", {"NCHW", "C", "C"}, "NCHW", "channels_last", 0},
      {"com.microsoft", "SkipGroupNorm", {"NHWC", "C", "C", "NHWC", "C"}, "NHWC", "channels_last", 1},
      {"com.microsoft", "SkipGroupNorm", {"NCHW", "C", "C", "NCHW", "C"}, "NCHW", "channels_last", 0},
  };
  return *kTable;
}

}  // namespace ascend_fuse::backwards
