"""Which columns of a table are features and which are the target."""

import difflib
from collections import Counter
from collections.abc import Sequence

from manyclass.data.readers.dataset import DataFileError, Request, quoted

# Looked for in this order before the last column is taken for the target.
TARGET_NAMES = ("target", "label", "class", "y")


def choose_columns(
    names: Sequence[str] | None, n_columns: int, request: Request, hidden: Sequence[str | int] = ()
) -> tuple[list[int], list[int]]:
    """Positions of the features and of the targets among the columns of a table, of which the hidden ones are neither.

    Refused are a column that was asked for, or that the model was fitted on, and is not there or is left out; two
    of the same name; and a column left out that would be the target.
    """
    twice = [name for name, count in Counter(names or ()).items() if count > 1]
    if twice:
        raise DataFileError(f"two columns are called {quoted(twice)}: rename one of them")
    dropped = {_position(column, names, n_columns) for column in (*request.drop, *hidden)}
    remaining = [j for j in range(n_columns) if j not in dropped]
    if names is not None and request.feature_names is not None:
        positions = {name: j for j, name in enumerate(names)}
        missing = [name for name in request.feature_names if name not in positions]
        if missing:
            raise DataFileError(
                f"the model was fitted on {quoted(missing)}, which this file lacks: "
                "use a file with the columns of the training data"
            )
        features = [positions[name] for name in request.feature_names]
        left_out = [name for name in request.feature_names if positions[name] in dropped]
        if left_out:
            raise DataFileError(
                f"the model was fitted on {quoted(left_out)}, which cannot be left out: correct drop (--drop on the "
                "command line)"
            )
        both = [name for name in request.feature_names if name in (request.targets or ())]
        if both:
            raise DataFileError(f"the model was fitted on {quoted(both)}, so the labels are in another column: name it")
        known = set(features)
        targets = _targets(names, n_columns, [j for j in remaining if j not in known], request)
    elif request.n_features is not None and len(remaining) == request.n_features:
        features, targets = remaining, []
    else:
        targets = _targets(names, n_columns, remaining, request)
        taken = set(targets)
        features = [j for j in remaining if j not in taken]
        if request.features is None and request.n_label_columns is None:
            shown = [j for j in range(n_columns) if names is None or names[j] not in hidden]
            usual = _targets(names, n_columns, shown, request)
            if usual != targets:
                name = str(usual[0] + 1) if names is None else names[usual[0]]
                raise DataFileError(
                    f"its column '{name}' would be its labels and is left out: name their column with target (--target "
                    "on the command line)"
                )
    if request.n_features is not None and len(features) != request.n_features:
        raise DataFileError(
            f"it has {len(remaining)} columns where {request.n_features} features, with or without labels after them, "
            "are expected: use a file with as many"
        )
    if not features:
        raise DataFileError("it has no feature columns beside the target: check how its columns are separated")
    return features, targets


def _targets(names: Sequence[str] | None, n_columns: int, remaining: list[int], request: Request) -> list[int]:
    if request.targets is not None:
        # A file to predict from need not hold the target.
        optional = request.features is not None
        wanted = [c for c in request.targets if not optional or _occurs(c, names, n_columns, remaining)]
        return [_position(column, names, n_columns) for column in wanted]
    if request.n_label_columns is not None:
        # Where features are known by name, those that remain are all labels.
        if not 0 < request.n_label_columns < len(remaining) + (request.feature_names is not None):
            raise DataFileError(
                f"it has {n_columns} columns, so the last {request.n_label_columns} cannot be its labels: "
                "give a number above 0 that leaves features"
            )
        return remaining[-request.n_label_columns :]
    if names is not None:
        lowered = {names[j].strip().lower(): j for j in reversed(remaining)}
        found = [lowered[name] for name in TARGET_NAMES if name in lowered]
        if found or request.feature_names is not None:
            return found[:1]
    return remaining[-1:]


def _occurs(column: str | int, names: Sequence[str] | None, n_columns: int, remaining: Sequence[int]) -> bool:
    """Whether a column given by name is there, or one given by its number is none of the features."""
    if not isinstance(column, str) or column in (names or ()):
        return True
    try:
        return int(column) % n_columns in remaining and -n_columns <= int(column) < n_columns
    except ValueError:
        return False


def _position(column: str | int, names: Sequence[str] | None, n_columns: int) -> int:
    """The position of a column given by name, or by a (possibly negative) index."""
    if isinstance(column, str) and names is not None and column in names:
        return list(names).index(column)
    try:
        index = int(column)
    except ValueError:
        index = n_columns
    if -n_columns <= index < n_columns:
        return index % n_columns
    if names is None:
        raise DataFileError(
            f"there is no column '{column}': the columns have no names, so give a number below {n_columns}"
        )
    close, parts = difflib.get_close_matches(str(column), names, n=1), str(column).split(",")
    if len(parts) > 1 and all(part.strip() in names for part in parts):
        raise DataFileError(f"there is no column '{column}': give each of {quoted(parts)} by itself")
    hint = f"did you mean '{close[0]}'?" if close else f"the columns are {quoted(names)}"
    raise DataFileError(f"there is no column '{column}': {hint}")
