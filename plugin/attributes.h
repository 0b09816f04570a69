// The attributes of a node, out of the JSON text in which ATC hands them to a plugin.
#ifndef ASCEND_FUSE_PLUGIN_ATTRIBUTES_H_
#define ASCEND_FUSE_PLUGIN_ATTRIBUTES_H_

#include <map>
#include <string>

#include "node.h"

namespace ascend_fuse_plugin {

// Reads {"attribute": [{"name": "dim", "type": 2, "i": -1}, ...]}. False for a text that is not of that form.
//
// ATC writes "f" as a text of six digits. A float that needs more stands in "floats", a list of one, which keeps all of
// them. "i", "f" and "s" are left out by some releases where they are 0 or empty.
bool ReadAttributes(const std::string& json, std::map<std::string, Attribute>* attributes);

}  // namespace ascend_fuse_plugin

#endif  // ASCEND_FUSE_PLUGIN_ATTRIBUTES_H_
