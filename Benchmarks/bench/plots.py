"""Plots of results: one bar for each contestant, with the range over the rounds; and one of all bars."""

from . import bars

SUBJECT_COLOUR, OTHER_COLOUR, SHORT_COLOUR = "#1f6f8b", "#b8c4ca", "#c2571a"
KINDS = ["png", "svg"]
# Values that differ by a larger factor need a logarithmic axis.
LINEAR = 100


def has_plot(result):
    return bool(result.main) and any(result.values(name, result.main.key) for name in result.rows)


def pyplot():
    # Only runs and documents need matplotlib.
    import matplotlib

    matplotlib.use("Agg")
    # Text stays text, and equal results give equal files.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.family": "sans-serif"})
    from matplotlib import pyplot

    return pyplot


def save(figure, folder, name, kinds):
    for kind in kinds:
        figure.savefig(folder / f"{name}.{kind}", dpi=120, metadata={"Date": None} if kind == "svg" else None)
    pyplot().close(figure)


def plain(value, _):
    return f"{value:,g}"


def plot(result, folder, kinds):
    """Writes the plot of the main metric."""
    metric = result.main
    names = [name for name in result.rows if result.values(name, metric.key)]
    medians = [result.median(name, metric.key) for name in names]
    ranges = [[median - min(result.values(name, metric.key)) for name, median in zip(names, medians)]]
    ranges += [[max(result.values(name, metric.key)) - median for name, median in zip(names, medians)]]
    colours = [SUBJECT_COLOUR if name.startswith(result.subject) else OTHER_COLOUR for name in names]
    figure, axes = pyplot().subplots(figsize=(8, 0.8 + 0.42 * len(names)), layout="constrained")
    axes.barh(names, medians, color=colours, xerr=ranges, error_kw={"elinewidth": 1, "capsize": 3})
    if max(medians) > LINEAR * min(medians):
        axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_title(result.title, loc="left", fontsize=10)
    axes.set_xlabel(metric.title + (", more is better" if metric.is_higher_better else ", less is better"))
    axes.xaxis.set_major_formatter(plain)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, folder, result.key, kinds)


def plot_bars(results, folder, kinds):
    """Writes a plot of how far each measured value reaches."""
    titles, shares = zip(*bars.shares(results))
    figure, axes = pyplot().subplots(figsize=(9, 1 + 0.24 * len(titles)), layout="constrained")
    axes.set_xscale("log", subs=[2, 5])
    axes.scatter(shares, range(len(shares)), color=[SUBJECT_COLOUR if share >= 1 else SHORT_COLOUR for share in shares], zorder=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(y=0.02)
    axes.set_yticks(range(len(titles)), titles, fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="y", color="#e5e9eb")
    axes.set_title("Measured, compared with the bars", loc="left", fontsize=10)
    axes.set_xlabel("share of the bar, more is better; 1 is the bar")
    axes.xaxis.set_major_formatter(plain)
    axes.xaxis.set_minor_formatter(plain)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, folder, "bars", kinds)


def plot_all(results, folder, kinds=KINDS):
    """Writes all plots into a folder. Returns their names."""
    names = []
    if bars.shares(results):
        plot_bars(results, folder, kinds)
        names.append("bars")
    for result in filter(has_plot, results):
        plot(result, folder, kinds)
        names.append(result.key)
    return names
