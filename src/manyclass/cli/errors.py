"""What went wrong, in one sentence that says what to do: the only place that turns exceptions into text."""

import errno
import os
import re

_BAD_VALUE = re.compile(r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\.", re.DOTALL)
_OPTIONS = {"random_state": "seed"}


class CommandError(Exception):
    """Something the user can put right; the message says how."""

    exit_code = 1


class UsageError(CommandError):
    """A command line that makes no sense."""

    exit_code = 2


class StoppedError(CommandError):
    """Ctrl-C, after which something was written."""

    exit_code = 130


def explain(error: BaseException) -> tuple[str, int]:
    """The sentence for an exception, and the exit code."""
    if isinstance(error, CommandError):
        return str(error), error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "stopped by Ctrl-C; nothing was written", 130
    if isinstance(error, MemoryError):
        # Where it is ours it says what is too large; NumPy's speaks of a single array.
        said = str(error) if "memory" in str(error) and "Unable to allocate" not in str(error) else ""
        return _with_options(said) or "there is not enough memory: use fewer rows, or save the features as float32", 1
    if isinstance(error, OSError):
        return _explain_os(error), 1
    # Typer's own errors, whose class has moved between its versions.
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        command = getattr(getattr(error, "ctx", None), "command_path", "manyclass")
        said = error.format_message().rstrip(".")
        return (f"{said}; see '{command} --help'" if said else ""), 2  # nothing where the help itself was shown
    if isinstance(error, ValueError):
        # scikit-learn and the readers explain a bad value in the first paragraph, and it is the user's.
        said = str(error).strip().split("\n\n")[0]
        bad_value = _BAD_VALUE.fullmatch(said)
        if bad_value:
            return _of_option(*bad_value.groups()), 2
        if "memory_limit" in said:
            return _with_options(said), 2 if "is no amount" in said else 1
        return said or repr(error), 1
    return (f"unexpected {type(error).__name__} ({error}): run again with --debug and report the traceback", 1)


def _of_option(parameter: str, allowed: str, given: str) -> str:
    """What scikit-learn says of the value of a parameter, of the option that sets it."""
    kinds = [kind for kind in re.split(r", (?=an? )| or ", allowed) if kind != "None" and "instance of" not in kind]
    told = re.sub(r"a str among \{(.*?)\}", r"\1", " or ".join(kinds)).replace("'", "")
    told = re.sub(r"an? (int|float) in the range ([\[(])(\S+), (\S+)[\])]", _of_range, told)
    option, value = _OPTIONS.get(parameter, parameter.replace("_", "-")), given.strip("'")
    return f"--{option} {value} cannot be used: it must be {told}"


def _of_range(interval: re.Match[str]) -> str:
    kind, opening, low, high = interval.groups()
    number = "a whole number" if kind == "int" else "a number"
    from_here = f"{number} of at least" if opening == "[" else f"{number} above"
    return f"{from_here} {float(low):g}" + ("" if high == "inf" else f" and at most {high}")


def _with_options(said: str) -> str:
    """What the library says of memory, with options in place of parameters and classes."""
    from manyclass.cli.estimators import ESTIMATORS

    said = re.sub(r"memory_limit='([^']*)'", r"memory_limit \1", said).replace("memory_limit", "--memory-limit")
    # No option says how large a block is, or names a curvature.
    said = said.replace("lower block_size, ", "").replace("curvature='auto'", "--solver auto")
    for option, (name, _) in ESTIMATORS.items():
        said = re.sub(rf"\b{name}\b", f"--solver {option}", said)
    return said


def _explain_os(error: OSError) -> str:
    # What has no name is what is printed.
    name = os.fsdecode(error.filename) if error.filename is not None else "the output"
    match error.errno:
        case errno.ENOENT:
            return f"there is no file {name}: check the path"
        case errno.EISDIR:
            return f"{name} is a folder: give a file, or --memory-limit to read all files in it"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"{name} may not be opened or written: check its permissions or choose another place"
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"there is no space left to write {name}: free some or choose another place"
    return f"{name}: {error.strerror or error}"
