"""Every place that was rewritten by itself, fed with what the original computes there."""

from __future__ import annotations

import pathlib
from typing import Any

from ascend_fuse.comparison import RegionComparison, compare, noise_of
from ascend_fuse.expanded import read_graph, session_of_model
from ascend_fuse.regions import Regions


def region_comparer(original_path, original, expanded_path, optimized, report, listed=False):
    """Returns a function (name of the binding, feeds, tolerance) -> comparisons of all regions; None without any. `listed`: the report
    is not that of the fusion (see Regions)."""
    regions = Regions(original, read_graph(pathlib.Path(expanded_path)), optimized, report, listed)
    if not regions.regions:
        return None
    # Beside the model, where its external data is found.
    probed = session_of_model(regions.probed_original(), original_path, "the original with inner values as outputs")
    compare_values = region_runner(regions, expanded_path)

    def compare_all(binding: str, feeds, tolerance: float) -> list[RegionComparison]:
        names = [o.name for o in probed.get_outputs()]
        return compare_values(binding, {**feeds, **dict(zip(names, probed.run(None, feeds)))}, tolerance)

    return compare_all


def region_runner(regions: Regions, expanded_path):
    """Returns a function (name of the binding, values of the original, tolerance) -> comparisons of the regions. The
    values are those of the original's inputs and of all `regions.probes`."""
    sessions: list[Any] = []
    noise = noise_of(regions.original)

    def compare_values(binding: str, values, tolerance: float) -> list[RegionComparison]:
        if not sessions:
            model = regions.region_model(values)
            sessions.append(session_of_model(model, expanded_path, "the regions"))
        session = sessions[0]
        found = session.run(None, {i.name: values[i.name] for i in session.get_inputs()})
        found = dict(zip([o.name for o in session.get_outputs()], found))
        comparisons = []
        for region, a, b, care in regions.compared(values, found):
            one = compare(binding, region.output, a, b, tolerance, care, noise.get(region.output, 0.0))
            named = {name: getattr(region, name) for name in ("kinds", "rules", "nodes", "module")}
            comparisons.append(RegionComparison(**vars(one), **named))
        return comparisons

    return compare_values
