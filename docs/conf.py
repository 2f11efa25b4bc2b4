"""How the site is built: ``make docs``."""

import inspect
import os
import re
import warnings
from importlib.metadata import version as version_of
from pathlib import Path

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"

project = "manyclass"
author = copyright = "manyclass developers"
version = release = version_of("manyclass")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "README.md", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/sg_execution_times.rst"]
exclude_patterns += ["sg_execution_times.rst"]
templates_path = ["_templates"]
highlight_language = "none"
smartquotes = False  # names are to be copied
toc_object_entries_show_parents = "hide"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
suppress_warnings = ["config.cache", "toc.empty_glob"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "autolink"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Two examples at a time, each on one thread: threads of two would wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.pop("MANYCLASS_DATA", None)  # what is drawn is bundled with scikit-learn, or made up
warnings.filterwarnings("ignore", message=".*cannot show the figure.*")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": ".*",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "parallel": 2,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 30,
    "show_signature": False,
    "capture_repr": (),
    "doc_module": ("manyclass",),
    "backreferences_dir": "gallery/backreferences",
}

html_theme = "pydata_sphinx_theme"
html_title = "manyclass"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "monokai",
}
html_sidebars = {name: [] for name in ("index", "getting_started", "choosing")}


def copy_results() -> None:
    """The tables and plots that pages link to become pages themselves."""
    for path in sorted(path for path in RESULTS.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".md":
            content = f"# {path.stem}\n\n".encode() + content
        target = DOCS / "results" / path.relative_to(RESULTS)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_bytes() != content:
            target.write_bytes(content)


def link_results(app, name: str, source: list[str]) -> None:
    source[0] = re.sub(r"\]\((?:\.\./)+benchmarks/results/?\)", "](/measurements.md)", source[0])
    source[0] = re.sub(r"\]\((?:\.\./)*benchmarks/results/", "](/results/", source[0])


def skip_members_of_others(app, what: str, name: str, member, skip: bool, options) -> bool | None:
    """Only what is written here is documented here: scikit-learn's and dataclasses' own methods are not."""
    module = getattr(inspect.unwrap(member), "__module__", None) if callable(member) else "manyclass"
    return True if module is None or not module.startswith("manyclass") else None


def setup(app) -> None:
    copy_results()
    app.connect("source-read", link_results)
    app.connect("autodoc-skip-member", skip_members_of_others)
