// Errors that are handed on: one word for the lines that are needed after nearly every call.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates an expression that gives an absl::Status, and returns it from the function around where it is an error. That function
// returns a Status or a StatusOr.
#define RETURN_IF_ERROR(expression)                                                         \
  do {                                                                                      \
    if (absl::Status return_if_error_status = (expression); !return_if_error_status.ok()) { \
      return return_if_error_status;                                                        \
    }                                                                                       \
  } while (false)

// Evaluates an expression that gives an absl::StatusOr, returns its status from the function around where it is an error, and
// declares a variable with its value where it is not: ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node)). A type with a comma
// is written `auto`. It is two statements: after an `if` it needs braces.
#define ASSIGN_OR_RETURN(declaration, ...) \
  ASCEND_FUSE_ASSIGN_OR_RETURN(ASCEND_FUSE_JOIN(status_or_, __LINE__), declaration, __VA_ARGS__)

#define ASCEND_FUSE_ASSIGN_OR_RETURN(result, declaration, ...) \
  auto result = (__VA_ARGS__);                                 \
  if (!result.ok()) return std::move(result).status();         \
  declaration = *std::move(result)
#define ASCEND_FUSE_JOIN(a, b) ASCEND_FUSE_JOIN_EXPANDED(a, b)
#define ASCEND_FUSE_JOIN_EXPANDED(a, b) a##b
