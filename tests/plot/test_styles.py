"""Looks for papers and slides: one set of files for our figures and everybody's; and figures that show themselves."""

import re
from io import BytesIO

import matplotlib
import matplotlib.pyplot as plt
import matplotlib.style
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import adom
from adom.errors import InputError
from adom.plot.curves import DASHES, convergence
from adom.plot.style import COLOURS, STYLES, magnification, save, size
from adom.plot.sweeps import sweep_figure
from adom.study.compare import Comparison
from support.drawn import legend, made, table

WIDTHS = {"column": 3.5, "page": 7.0, "slide": 10.0}


@pytest.fixture(autouse=True)
def nothing_left_behind():
    matplotlib.use("agg")
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", STYLES)
def test_a_style_is_a_file_that_anybody_can_use(name):
    with matplotlib.style.context(f"adom.styles.{name}"):
        set_ = matplotlib.rcParams
        assert set_["figure.figsize"][0] == WIDTHS[name]
        cycle = set_["axes.prop_cycle"].by_key()
        assert [colour.upper() for colour in cycle["color"]] == [colour.upper() for colour in COLOURS]
        assert cycle["linestyle"] == [DASHES[i % len(DASHES)] for i in range(len(COLOURS))]
        assert (set_["pdf.fonttype"], set_["ps.fonttype"], set_["savefig.dpi"]) == (42, 42, 300)
        figure, axes = plt.subplots()
        axes.plot([1, 2])
        axes.set_xlabel("x")
        assert figure.get_size_inches()[0] == WIDTHS[name]
        assert axes.xaxis.label.get_fontsize() == 8 * magnification(name)


def kinds(style):
    run, many = made([1.0, 0.1]), Comparison({"a": made([1.0, 0.1]), "b": made([1.0, 0.5])})
    cells = [(x, y) for x in (1.0, 2.0) for y in (0.1, 0.2)]
    x, y = zip(*cells, strict=True)
    costs = table(label=["a", "b"] * 2, eta=x, tau=y, rounds_to_target=[9.0, 8, 7, 3])
    return {
        "one run": run.plot(style=style),
        "all costs": many.plot("all", style=style),
        "methods": many.plot(style=style),
        "curves": sweep_figure(costs, "eta", style=style),
        "maps": sweep_figure(costs, "eta", "tau", style=style),
        "a network": adom.networks.ring(5).plot(style=style),
        "rounds": adom.networks.ring(5).plot([0, 1, 2], style=style),
    }


@pytest.mark.parametrize("name", STYLES)
def test_every_figure_has_the_width_and_the_letters_of_its_style(name):
    for kind, figure in kinds(name).items():
        assert figure.get_size_inches()[0] == WIDTHS[name], kind
        axes = figure.axes[0]
        text = axes.title if axes.get_title() else axes.xaxis.label
        assert text.get_fontsize() == 8 * magnification(name), kind


def test_without_a_style_several_panels_get_a_page():
    widths = {kind: figure.get_size_inches()[0] for kind, figure in kinds(None).items()}
    wide = {"all costs", "maps", "rounds"}
    assert widths == {kind: 7.0 if kind in wide else 3.5 for kind in widths}
    assert (size(None), size(None, 2)) == ((3.5, 2.2), (7.0, 2.5))


@pytest.mark.parametrize("name", [None, *STYLES])
@pytest.mark.parametrize("consensus", [True, False])
def test_legends_and_labels_lie_inside_the_figure(name, consensus):
    runs = [made([1.0, 0.1], title="ADOM", oracle="auto"), made([1.0, 0.5], title="Acc-DNGD", oracle="auto")]
    figure = convergence(runs[: 1 if consensus else 2], consensus=consensus, style=name)
    FigureCanvasAgg(figure).draw()
    for part in (figure.legends[0], figure.axes[0].xaxis.label, figure.axes[0].yaxis.label):
        box = part.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert "ADOM (unit, oracle auto)" in legend(figure)


def test_lines_grow_with_the_letters_and_the_fonts_of_the_reader_are_kept():
    small, large = (made([1.0, 0.1]).plot(style=name).axes[0].lines[0] for name in ("page", "slide"))
    assert large.get_linewidth() == 2.5 * small.get_linewidth()
    with matplotlib.rc_context({"font.family": ["serif"]}):
        assert made([1.0, 0.1]).plot(style="column").axes[0].xaxis.label.get_fontfamily() == ["serif"]
    with pytest.raises(InputError, match=r"unknown style 'colum'; did you mean 'column'\? known: column, page, slide"):
        made([1.0]).plot(style="colum")


def fonts(content):
    return set(re.findall(rb"/Subtype /(Type3|CIDFontType2|Type42|TrueType)", content))


def test_files_are_fine_enough_for_print_and_their_text_stays_text(tmp_path):
    figure = made([1.0, 0.1]).plot()
    figure.savefig(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == tuple((figure.get_size_inches() * 300).astype(int))
    figure.savefig(tmp_path / "b.png", dpi=50)
    with matplotlib.rc_context({"savefig.dpi": 40}):
        figure.savefig(tmp_path / "c.png")
    for name, dpi in (("b.png", 50), ("c.png", 40)):
        with Image.open(tmp_path / name) as picture:
            assert picture.width == int(3.5 * dpi)
    for target in (tmp_path / "a.pdf", BytesIO()):
        figure.savefig(target, format="pdf")
        content = target.getvalue() if isinstance(target, BytesIO) else target.read_bytes()
        assert fonts(content) == {b"CIDFontType2"}
    assert save(figure, tmp_path / "saved.pdf").read_bytes().startswith(b"%PDF")


def test_a_notebook_gets_a_picture_twice_as_fine_as_it_is_shown():
    figure = adom.networks.ring(5).plot()
    content, shown = figure._repr_png_()
    with Image.open(BytesIO(content)) as picture:
        assert picture.width == 2 * shown["width"] == 2 * 525
    assert "matplotlib.pyplot" not in type(figure).__module__
    assert plt.get_fignums() == []


@pytest.mark.filterwarnings("ignore:.*non-interactive")
def test_a_figure_that_is_shown_is_one_of_pyplots():
    figure, other = made([1.0, 0.1]).plot(), adom.networks.ring(5).plot()
    figure.show()
    other.show()
    figure.show()
    assert [plt.figure(number) for number in plt.get_fignums()] == [figure, other]


def test_a_notebooks_kernel_shows_a_figure_itself(monkeypatch):
    import sys
    from types import SimpleNamespace

    shown = []
    display = SimpleNamespace(display=shown.append)
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    figure = adom.networks.ring(5).plot()
    figure.show()
    assert shown == [figure]
    assert plt.get_fignums() == []


def test_styles_are_the_same_but_for_their_sizes():
    found = {}
    for name in STYLES:
        with matplotlib.style.context(f"adom.styles.{name}"):
            found[name] = dict(matplotlib.rcParams)
    differing = {key for key in found["column"] if found["column"][key] != found["page"][key]}
    assert differing == {"figure.figsize"}
    larger = {key for key in found["column"] if found["column"][key] != found["slide"][key]} - {"figure.figsize"}
    for key in larger - {"figure.dpi"}:
        assert np.isclose(found["slide"][key], 2.5 * found["column"][key]), key
