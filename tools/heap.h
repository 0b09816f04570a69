// The heap of the program: large pages from the start.
#pragma once

namespace ascend_fuse {

// Lets the first 48 MB of glibc's heap stand in pages of 2 MB, which the kernel gives as they are touched: a run that makes many
// small objects takes a quarter less time in the kernel. Asked once, before anything large is made. Does nothing with another C
// library, or where that much address space is not to be had.
void UseLargePages();

}  // namespace ascend_fuse
