// The version of this plugin. Written by `ascend-fuse plugin`; do not edit.
#ifndef ASCEND_FUSE_PLUGIN_VERSION_H_
#define ASCEND_FUSE_PLUGIN_VERSION_H_

#define ASCEND_FUSE_PLUGIN_VERSION 3

#endif  // ASCEND_FUSE_PLUGIN_VERSION_H_
