# The messages of ONNX once more, for tests: as proto3, in which protobuf refuses strings that are not UTF-8, as the parser of
# ATC does, whose own onnx.proto is proto3. With the full runtime, so that a test can walk through all fields there are. Never with sanitizers:
# it is protobuf's code.
include_guard(GLOBAL)
set(STRICT_PROTO ${CMAKE_BINARY_DIR}/onnx_proto/proto/strict_onnx.proto)
file(READ ${CMAKE_SOURCE_DIR}/proto/onnx.proto text)
string(REPLACE "\npackage onnx;" "\npackage ascend_fuse.strict_onnx;" text "${text}")
string(REPLACE "syntax = \"proto2\";" "syntax = \"proto3\";" text "${text}")
string(REPLACE "\noption optimize_for = LITE_RUNTIME;" "" text "${text}")
file(CONFIGURE OUTPUT ${STRICT_PROTO} CONTENT "${text}" @ONLY)
add_library(af_strict_onnx STATIC)
generate_messages(af_strict_onnx ${CMAKE_BINARY_DIR}/onnx_proto ${STRICT_PROTO})
target_include_directories(af_strict_onnx SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(af_strict_onnx PUBLIC protobuf::libprotobuf)
