// Errors that are handed on: one word for the line that is needed after nearly every call.
#pragma once

#include "absl/status/status.h"

// Evaluates an expression that gives an absl::Status, and returns it from the function around where it is an error. That function
// returns a Status or a StatusOr.
#define RETURN_IF_ERROR(expression)                                                         \
  do {                                                                                      \
    if (absl::Status return_if_error_status = (expression); !return_if_error_status.ok()) { \
      return return_if_error_status;                                                        \
    }                                                                                       \
  } while (false)
