"""The structure of the package, as truths that anyone can read."""

import ast
import inspect
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import manyclass
from manyclass import features

SOURCE = Path(manyclass.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = (
    "execution",
    "data",
    "model",
    "fit",
    "curvature",
    "solvers",
    "features",
    ("stagewise", "dual", "subgradient", "bound"),
    "choice",
    "estimators",
    ("linear_model", "export"),
    "diagnostics",
    "cli",
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in ((layer,) if isinstance(layer, str) else layer)}


def name(path):
    return str(path.relative_to(SOURCE))


TEXTS = {path: path.read_text() for path in FILES}


@cache
def tree(path):
    return ast.parse(TEXTS[path])


def test_no_file_is_too_long_to_read():
    assert {name(path) for path, text in TEXTS.items() if len(text.splitlines()) > 400} == set()


def test_the_repository_holds_no_data_by_mistake():
    root = SOURCE.parents[1]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    kept = [root / one for one in listed.stdout.split("\0") if one and (root / one).is_file()]
    assert {str(path.relative_to(root)) for path in kept if path.stat().st_size > 2**20} == set()


def is_compiled(function):
    return any(ast.unparse(one).startswith(("njit", "entry", "inner")) for one in function.decorator_list)


def n_lines(function):
    """Without the docstring, which says all that a reader must know, however long that is."""
    first = function.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.end_lineno - function.lineno + 1 - (first.end_lineno - first.lineno + 1 if told else 0)


def test_no_function_is_longer_than_a_page():
    found = [
        (name(path), node.name, n_lines(node))
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and n_lines(node) > 60 and not is_compiled(node)
    ]
    assert found == []


def public_classes():
    for module in (manyclass, features, manyclass.diagnostics):
        for public in module.__all__:
            found = getattr(module, public)
            if inspect.isclass(found):
                yield found


def test_no_public_constructor_has_more_than_fourteen_parameters():
    assert [kind.__name__ for kind in public_classes() if len(inspect.signature(kind).parameters) > 14] == []


def test_rows_are_told_apart_where_they_are_held_and_nowhere_else():
    """What holds X, and where that lies, is known in data/."""
    asks = re.compile(r"issparse|is_sparse|isinstance\([^)]*(ndarray|Rows)|is_numpy|is_torch|is_array_api|\.is_here")
    found = [
        f"{name(path)}: {line.strip()}"
        for path in FILES
        if path.relative_to(SOURCE).parts[0] != "data"
        for line in TEXTS[path].splitlines()
        if asks.search(line) and not line.lstrip().startswith(("from ", "import "))
    ]
    assert len(found) <= 5, "\n".join(found)


def imports(path):
    """Modules of the package that a file imports, wherever it does so, but for type checking alone."""

    def visit(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("manyclass"):
            if node.module == "manyclass":
                yield from (f"manyclass.{alias.name}" for alias in node.names)
            else:
                yield node.module
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("manyclass."))
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    yield from visit(tree(path))


def test_each_folder_knows_only_those_before_it():
    found = []
    for path in FILES:
        own = path.relative_to(SOURCE).parts[0]
        for module in imports(path) if own in RANK else ():
            folder = module.split(".")[1]
            if folder in RANK and folder != own and RANK[folder] >= RANK[own]:
                found.append(f"{name(path)} imports {module}")
    assert found == []


def test_compiled_loops_start_no_threads_beside_those_of_blas():
    assert {name(path) for path, text in TEXTS.items() if re.search(r"parallel=True|prange", text)} == set()


def test_every_folder_has_its_place():
    assert {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()} == set(RANK)
