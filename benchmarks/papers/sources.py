"""The data of the papers: which files below the data folder each set is, and what stands in for it elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.data import found_data_dir


class MissingError(Exception):
    """A set is not at hand, and nothing stands in for it."""


@dataclass(frozen=True)
class Source:
    """Files below the data folder, where they come from, and a stand-in, at full and at quick size."""

    files: tuple[str, ...]
    origin: str
    stand_in: str | None = None
    small: str | None = None


DIGITS = "digits"
"""Comes with scikit-learn."""


def _libsvm(name: str, *parts: str) -> Source:
    files = tuple(f"libsvm/{name}{part}.gz" for part in ("", *parts))
    return Source(files, f"{name} of the LIBSVM page, compressed by gzip", DIGITS, DIGITS)


def _table(name: str) -> Source:
    return Source((f"tabular/{name}.tsv.gz",), f"{name} of the PMLB collection", DIGITS, DIGITS)


_MNIST = tuple(f"mnist/{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
_POSTS = Source(("20newsgroups/20news-bydate.tar.gz",), "qwone.com/~jason/20Newsgroups")
_RCV1 = "of the LIBSVM page with their roles switched, as in the paper, compressed by gzip under these names"
SOURCES: dict[str, Source] = {
    "mnist": Source(_MNIST, "the four IDX files of MNIST", DIGITS, DIGITS),
    "cifar10": Source(("cifar10/cifar10_jpg.tar.xz",), "CIFAR-10 as an archive of images, train/<class>/<number>.jpg"),
    "20newsgroups": _POSTS,
    "20news-unit": _POSTS,
    "newsgroups": _POSTS,
    "a9a": _libsvm("a9a", ".t"),
    "w8a": _libsvm("w8a"),
    **{name: _table(name) for name in ("letter", "kddcup", "ecoli", "adult")},
    "rcv1-4": Source(
        ("libsvm/rcv1-4.gz", "libsvm/rcv1-4.t.gz"),
        "Reuters RCV1-v2, documents of one of CCAT, ECAT, GCAT and MCAT, as LIBSVM files",
        "rcv1-like-4",
        "rcv1-like-4-small",
    ),
    "rcv1-53": Source(
        ("libsvm/rcv1-53.gz", "libsvm/rcv1-53.t.gz"),
        f"rcv1_test.multiclass and rcv1_train.multiclass {_RCV1}",
        "rcv1-like-53",
        "rcv1-like-53-small",
    ),
}


def missing(name: str) -> list[str]:
    """The files of a set that are not there."""
    folder = found_data_dir()
    return [file for file in SOURCES[name].files if folder is None or not (folder / file).is_file()]


def wanted(name: str) -> str:
    """A sentence."""
    where = "below the folder that --data or MANYCLASS_DATA names"
    return f"{name} wants {', '.join(missing(name))} {where} ({SOURCES[name].origin})"


def at_hand(name: str, quick: bool) -> str:
    """The set itself where its files are there, or what stands in for it."""
    if not missing(name):
        return name
    stand_in = SOURCES[name].small if quick else SOURCES[name].stand_in
    if stand_in is None:
        raise MissingError(wanted(name))
    return stand_in


def described(name: str, quick: bool) -> str:
    """For the list and the page: at hand, or what is taken in its place."""
    if not missing(name):
        return f"{name}: at hand"
    stand_in = SOURCES[name].small if quick else SOURCES[name].stand_in
    return f"{wanted(name)}; {f'{stand_in} stands in' if stand_in else 'nothing stands in'}"
