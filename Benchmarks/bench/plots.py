"""Plots of results: one bar for each contestant, with the range over the rounds."""

import matplotlib

matplotlib.use("Agg")
# Text stays text, and equal results give equal files.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.family": "sans-serif"})
from matplotlib import pyplot  # noqa: E402

SUBJECT_COLOUR, OTHER_COLOUR = "#1f6f8b", "#b8c4ca"


def plot(result, folder):
    """Writes <key>.png and <key>.svg, unless the result has no main metric."""
    metric = result.main
    names = [name for name in result.rows if metric and result.rows[name].get(metric.key)]
    if not names:
        return
    medians = [result.median(name, metric.key) for name in names]
    ranges = [[median - min(result.rows[name][metric.key]) for name, median in zip(names, medians)]]
    ranges += [[max(result.rows[name][metric.key]) - median for name, median in zip(names, medians)]]
    colours = [SUBJECT_COLOUR if name.startswith(result.subject) else OTHER_COLOUR for name in names]
    figure, axes = pyplot.subplots(figsize=(8, 0.6 + 0.42 * len(names)), layout="constrained")
    axes.barh(names, medians, color=colours, xerr=ranges, error_kw={"elinewidth": 1, "capsize": 3})
    axes.invert_yaxis()
    axes.set_title(result.title, loc="left", fontsize=10)
    axes.set_xlabel(metric.title + (", more is better" if metric.is_higher_better else ", less is better"))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.spines[["top", "right"]].set_visible(False)
    for kind in ("png", "svg"):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(folder / f"{result.key}.{kind}", dpi=120, metadata=metadata)
    pyplot.close(figure)
