// Lists without repeats that are read in the order in which they were made.
#pragma once

#include <algorithm>
#include <vector>

namespace ascend_fuse {

// Appends the item where the list does not have it; the list is short.
template <typename T>
void AddOnce(const T& item, std::vector<T>* list) {
  if (std::find(list->begin(), list->end(), item) == list->end()) list->push_back(item);
}

// The same of each of `items`.
template <typename T>
void AddEachOnce(const std::vector<T>& items, std::vector<T>* list) {
  for (const T& item : items) AddOnce(item, list);
}

}  // namespace ascend_fuse
