#include "passes/lower/open_dims.h"

#include <algorithm>

namespace ascend_fuse {

std::vector<Site*> ForgetGeOfOpenDims(Workspace& workspace) {
  std::vector<Site*> sites;
  for (Site& site : workspace.sites) {
    const bool by_ge = site.of_numbers && workspace.target()->FusedByGe(site.construct()).has_value();
    if (by_ge && site.node != nullptr && site.pending() && !site.node->dead) sites.push_back(&site);
  }
  if (sites.empty()) return sites;
  const Facts written = workspace.FactsOfNow();
  std::erase_if(sites, [&](const Site* site) {
    const Fact& x = written.Of(site->node->input(0));
    return std::all_of(x.shape.begin(), x.shape.end(), [&](Dim dim) { return written.dims().Resolve(dim).is_number(); });
  });
  for (Site* site : sites) {
    site->no_ge_pass = true;
    site->ge_construct.clear();
  }
  return sites;
}

}  // namespace ascend_fuse
