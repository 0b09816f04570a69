// What the page of an analysis has below its first screen: sections of tables, each "" where there is nothing to say.
#pragma once

#include <string>

#include "passes/analyze/page.h"

namespace ascend_fuse {

std::string PageSection(std::string_view id, std::string_view title, const std::string& html);

std::string PageTotals(const Analysis& analysis);
std::string PageOperators(const Analysis& analysis);
std::string PageModules(const Analysis& analysis);
std::string PageOpportunities(const Analysis& analysis, const AnalysisPageOptions& options);
std::string PageSites(const Analysis& analysis, const AnalysisPageOptions& options);
std::string PageMemory(const Analysis& analysis);
std::string PageHost(const Analysis& analysis);
std::string PagePrecision(const Analysis& analysis);
std::string PageFindings(const Analysis& analysis);
std::string PageComplexity(const Analysis& analysis);
// Near misses, evidence, assumptions, contradictions.
std::string PageRest(const Analysis& analysis);

}  // namespace ascend_fuse
