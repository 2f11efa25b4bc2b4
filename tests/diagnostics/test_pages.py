"""Pages: they hold what the report holds, run nothing, ask for nothing, and read no name as markup."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_iris

from manyclass import analyze
from manyclass.diagnostics.charts import Chart, Scale
from manyclass.diagnostics.mistakes import Mistakes
from manyclass.diagnostics.page import document, section, side_by_side, table, tag
from manyclass.diagnostics.reliability import Reliability
from manyclass.diagnostics.report_page import mistakes_by_class, pairs_of_classes

HOSTILE = '<script>alert("1")</script>'
VOID = {"meta"}


class Elements(HTMLParser):
    """Names of elements, attributes and text of a page, and whether every element is closed in its turn."""

    def __init__(self, page):
        super().__init__()
        self.names, self.attributes, self.text, self.open = set(), [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.names.add(name)
        self.attributes += attributes
        self.open += [name] * (name not in VOID)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def report():
    X, y = load_iris(return_X_y=True)
    return analyze(X, np.array([HOSTILE, "b & c", "d"])[y], feature_names=["<i>", '"q"', "c", "d"])


@pytest.fixture
def hundred(rng):
    y = np.repeat(np.arange(100), 4)
    return analyze(np.eye(100)[y] + 0.3 * rng.standard_normal((400, 100)), y)


def test_names_are_text_and_nothing_is_fetched_or_run(report):
    for page in (report.to_html(HOSTILE), report._repr_html_()):
        found = Elements(page)
        assert "script" not in found.names and "i" not in found.names
        assert HOSTILE in found.text
        assert not {"src", "onload", "xlink:href"} & {name for name, _ in found.attributes}
        assert all(value.startswith("#") for name, value in found.attributes if name == "href")
        assert "http:" not in page and "https:" not in page and "@import" not in page and "url(" not in page


def test_names_do_not_turn_what_stands_beside_them(rng):
    """Neither by characters that steer the direction of text, nor by letters that run to the left."""
    names = ["safe\u202egnp.exe", "\u2067x", "\u05d0\u05d1\u05d2", "pl\x1b[2Jain\n"]
    y = np.repeat(np.arange(4), 30)
    X = np.eye(4)[y] + 0.7 * rng.standard_normal((120, 4))
    X[:, 3] = 1.0
    report = analyze(X, np.array(names)[y], feature_names=["a", "b", "c", "\u202ed"])
    for text in (str(report), report.to_html("names"), report._repr_html_()):
        assert not re.search("[\u202a-\u202e\u2066\u2067\x1b]", text) and r"pl\u001b[2Jain\u000a" in text
        assert r"safe\u202egnp.exe" in text and r"\u2067x" in text and r"1: \u202ed" in text
        isolated = re.findall("\u2068([^\u2069]*)\u2069", text)
        assert set(isolated) == {names[2]} and len(isolated) == text.count(names[2]) == text.count("\u2069")
    assert sorted(report.to_dict()["labels"]["classes"]) == sorted(names)


def test_a_page_can_be_read_without_eyes_or_mouse(report, hundred):
    for one in (report, hundred):
        page = one.to_html("data")
        found = Elements(page)
        assert ("lang", "en") in found.attributes and ("href", "#report") in found.attributes
        assert page.count("<svg") == page.count('role="img" aria-label="')
        assert page.count('class="scroll"') == page.count('tabindex="0"') == page.count("<table ")
        links = [value[1:] for name, value in found.attributes if name == "href"]
        assert set(links) <= {value for name, value in found.attributes if name == "id"}


def test_every_part_of_the_report_is_there(report, hundred):
    for one, words in ((report, ("b &amp; c", "Class balance")), (hundred, ("Rows of each of 100 classes",))):
        page = one.to_html("data")
        for word in (*words, one.recommendation, "Spectrum and response", "Worst classes", "SDCAClassifier"):
            assert word in page


def test_rows_that_are_all_incomplete_have_a_page():
    page = analyze(np.full((20, 3), np.nan), np.arange(20) % 2).to_html("nothing")
    assert "no row is complete" in page and "Spectrum and response" not in page
    Elements(page)


def test_mistakes_are_those_of_a_linear_model(report, hundred, rng):
    assert report.mistakes.error == pytest.approx(0.02)  # what Fisher's discriminants, each row left out, have on iris
    assert {(true, told) for true, told, _ in report.mistakes.pairs} == {(1, 2), (2, 1)}
    assert sum(report.mistakes.missed) == 3 == sum(report.mistakes.added)
    assert hundred.mistakes.error == pytest.approx(0.9, abs=0.08)  # what four rows of a class tell discriminants there
    X, y = rng.standard_normal((300, 200)), rng.integers(0, 2, 300)
    assert abs(analyze(X, y).mistakes.error - 0.5) < 0.12  # nothing is learnt, and rows do not vouch for themselves


def test_mistakes_count():
    found = Mistakes.of(np.array([0, 0, 0, 1, 2]), np.array([1, 1, 0, 1, 0]), 4)
    assert (found.rows, found.missed, found.added) == ((3, 1, 1, 0), (2, 0, 1, 0), (1, 2, 0, 0))
    assert found.pairs == ((0, 1, 2), (2, 0, 1)) and found.worst() == [2, 0, 1] and found.error == 0.6
    several = Mistakes.of(np.array([[1, 0], [1, 1]]), np.array([[0, 0], [1, 1]]), 2)
    assert (several.rows, several.missed, several.added, several.error) == ((2, 1), (1, 0), (0, 0), 0.25)


def test_labels_have_names(rng):
    X = rng.standard_normal((120, 4))
    report = analyze(X, (X[:, :2] > 0).astype(int), label_names=["beach", "urban"])
    assert "Worst labels" in report.to_html("scenes") and "beach" in report.to_html("scenes")


def test_reliability_counts_each_prediction_once(rng):
    found, p = Reliability(), rng.random(5000)
    true = rng.random(5000) < p
    found.add(p[:2000], true[:2000])
    found.add(p[2000:], true[2000:])
    assert sum(n for _, _, n in found.rows()) == 5000 and found.error < 0.03
    found.add(np.array([1.0]), np.array([True]))
    assert found.counts[-1] == np.sum(p >= 0.9) + 1
    assert Reliability().error == 0.0


def test_the_error_of_probabilities_is_the_mean_of_all_bins():
    found = Reliability()
    found.add(np.array([0.95, 0.95, 0.55, 0.55]), np.array([1, 0, 1, 1]))
    assert found.error == pytest.approx((abs(1.9 - 1) + abs(1.1 - 2)) / 4)


def test_a_class_without_rows_that_others_are_taken_for_is_listed():
    found = Mistakes.of(np.array([1, 1, 2]), np.array([0, 1, 2]), 4)
    listed = Elements(mistakes_by_class(found, ["none", "some", "right", "absent"], "class")).text
    assert "none" in listed and "some" in listed and "absent" not in listed


def test_classes_are_listed_by_their_rows(rng):
    y = np.repeat(["few", "many", "more"], [10, 60, 30])
    page = analyze(rng.standard_normal((100, 3)), y).to_html("data")
    shown = page[page.index("Rows of each class") :]
    assert shown.index(">many<") < shown.index(">more<") < shown.index(">few<")


@pytest.mark.parametrize("values", [[1.0], [3.0, 3.0], [0.0], [], [1e-300, 1e300], [np.inf, 2.0], [-5.0, 7.0]])
@pytest.mark.parametrize("log", [False, True])
def test_pictures_of_anything(values, log):
    scale = Scale.of(values, log=log)
    assert scale.low < scale.high and 1 <= len(scale.ticks()) <= 8
    chart = Chart("<alt>", scale, scale, "x", "y")
    assert "nan" not in chart.drawn(chart.line(values, values)) and "<alt>" not in chart.drawn()


def test_what_is_put_into_a_tag_is_escaped():
    assert tag("p", "a<b", tag("b", "&"), title='"') == '<p title="&quot;">a&lt;b<b>&amp;</b></p>'


# -- as a browser shows it -------------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr --hide-scrollbars"
).split()
MEASURE = """
<script>addEventListener("load", () => {
  const root = document.scrollingElement;
  const wide = [...document.querySelectorAll("body *")].filter(one =>
    !one.closest(".scroll, .skip, svg") && one.getBoundingClientRect().right > innerWidth + 0.5);
  const hidden = [...document.querySelectorAll(".bar")].filter(one =>
    one.getBoundingClientRect().right > one.closest(".scroll").getBoundingClientRect().right + 0.5);
  document.title = `measured ${innerWidth} ${root.scrollWidth} ${wide.length} ${hidden.length}`;
})</script>
"""


def width_of(page, width, folder):
    """(width of the window, of what is in it, elements that stick out, bars that have to be scrolled to), and what the
    browser complained of.

    The page is held in a frame, as windows of a browser without a screen are never narrower than some 500 pixels.
    """
    # The measuring script is the only one, and has to be let in.
    opened = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', MEASURE, page)
    (folder / "inner.html").write_text(opened, encoding="utf-8")
    (folder / "page.html").write_text(page, encoding="utf-8")
    outer = f'<body style="margin:0"><iframe src="inner.html" style="border:0;width:{width}px;height:900px"></iframe>'
    outer += '<script>addEventListener("load", () => { document.title = frames[0].document.title })</script>'
    (folder / "outer.html").write_text(outer)

    def seen(name, *options):
        profile = f"--user-data-dir={folder / 'profile'}"
        url = (folder / name).as_uri()
        done = subprocess.run(
            [CHROMIUM, *QUIET, *options, profile, "--dump-dom", url], capture_output=True, text=True, timeout=300
        )
        return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    dom, _ = seen("outer.html", "--allow-file-access-from-files")
    measured = re.search(r"measured (\d+) (\d+) (\d+) (\d+)", dom)
    assert measured, dom[:500]
    return tuple(map(int, measured.groups())), seen("page.html")[1]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_and_nothing_is_complained_of(width, report, tmp_path):
    long = table("A caption", ("name", "figure"), [("x" * 300, "1"), ("y", "2" * 80)])
    page = report.to_html("a_name_without_a_place_to_break_it_" * 4).replace("</main>", f"{long}</main>")
    (window, inside, outside, _), complaints = width_of(page, width, tmp_path)
    assert (window, inside, outside, complaints) == (width, width, 0, [])


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [375, 1000])
def test_long_names_leave_room_for_the_figures_beside_them(width, tmp_path):
    names = ["a_name_without_a_place_to_break_it_" * 4, "a name of many words " * 6, "c"]
    found = Mistakes.of(np.array([0, 1, 2, 0, 1]), np.array([1, 0, 2, 2, 2]), 3)
    tables = side_by_side(mistakes_by_class(found, names, "class"), pairs_of_classes(found, names))
    (_, inside, outside, hidden), _ = width_of(document("names", "long", section("Worst", tables)), width, tmp_path)
    assert (inside, outside, hidden) == (width, 0, 0)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_browser_test_sees_what_it_looks_for(tmp_path):
    page = document("wide", "too wide", section("One", tag("div", "x", style="width:2000px")))
    (window, inside, outside, _), _ = width_of(page, 390, tmp_path)
    assert window == 390 and inside > 2000 and outside
