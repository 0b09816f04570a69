// What a pass in Python is given: a view of the graph and a rewriter, valid while the pass runs.
#pragma once

#include <nanobind/nanobind.h>

#include "absl/status/status.h"
#include "passes/core/workspace.h"

namespace ascend_fuse::python {

// Adds the classes Graph, Node, Value and Rewriter to the module.
void AddGraphClasses(nanobind::module_& module);

// Calls `function (graph, rewriter)` over the workspace; needs the GIL. Handles that the function keeps raise an error when
// they are used afterwards. What the function raises is thrown as nanobind::python_error.
void CallPass(const nanobind::object& function, Workspace& workspace);

}  // namespace ascend_fuse::python
