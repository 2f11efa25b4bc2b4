"""What `TableEncoder` makes of one column, by what it holds. A new kind is a class here and a line in `learned`.

Each is learned from the rows that count, each with its weight; ``names`` has one name for each column of ``values``,
and ``numbers`` are the places of those that may be cut into steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from manyclass.data.readers.dataset import as_csr, is_number

WORDS = 2.0
"""On average, from which on texts are taken apart where there are more of them than the root of the rows."""

MOSTLY = 0.5
"""Of the rows with a text, that have a number in a column of numbers."""

SHARED = 0.5
"""Of the rows with a text that is frequent as it is, above which texts are categories, too."""

SIGNS = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{SIGNS}]|[^\W{SIGNS}]+")
"""Letters and digits in a row, or a single sign of Chinese or Japanese, which puts no space between words."""

PERIODS = {"day": 1.0, "week": 7.0, "year": 365.2425}
"""Of cycles, in days."""

MOST_FOR_PAIRS, MOST_FOR_TRIPLES = 1 << 27, 1 << 23
"""Characters in all texts of a column, up to which pairs of words are counted, each of which takes memory when it is
new, and triples of characters, of which a text has more than three times as many as words."""


@dataclass(frozen=True)
class Numbers:
    """Numbers, or days since 1970, in standard deviations from their mean, with a column for what is missing: NaN."""

    mean: float
    deviation: float
    may_lack: bool
    kind: str

    @classmethod
    def learned(cls, values: np.ndarray, weight: np.ndarray, kind: str) -> Self:
        present = ~np.isnan(values)
        held, mass = values[present].astype(np.float64), weight[present]
        if np.isinf(held).any():
            raise ValueError("it holds infinity")
        unit = float(abs(held).max()) or 1.0  # whose square may be beyond float64
        mean = float(np.average(held / unit, weights=mass))
        deviation = float(np.sqrt(np.average((held / unit - mean) ** 2, weights=mass)))
        is_constant = held.min() == held.max()
        return cls(unit * mean, 1.0 if is_constant else unit * deviation or 1.0, not bool(present.all()), kind)

    @property
    def numbers(self) -> list[int]:
        return [0]

    def names(self, name: str) -> list[str]:
        return [name, f"missingindicator_{name}"][: 1 + self.may_lack]

    def values(self, column: Any) -> np.ndarray:
        from manyclass.data.frames import NUMBER, TIME, kind_of, numbers

        found = numbers(column).astype(np.float64, copy=False)
        if np.isinf(found).any():
            raise ValueError("it holds infinity")
        is_missing = np.isnan(found)
        # Text that reads as numbers is taken for them, but never for days.
        if TIME in {self.kind, kind_of(column.type)} != {TIME} and not is_missing.all():
            one, other = ("numbers", "dates") if self.kind == NUMBER else ("dates", "numbers")
            raise ValueError(f"it held {one} when it was fitted, and holds {other}")
        scaled = (found - self.mean) / self.deviation
        return np.stack([scaled, is_missing], axis=1)[:, : 1 + self.may_lack]


@dataclass(frozen=True)
class Times:
    """Days since 1970, and of each cycle (day, week, year) that the rows have gone through the part that is over.

    Steps of that part are any times of a cycle; its cosine and sine, which are the same at both ends, serve linear
    models and kernels.
    """

    days: Numbers
    cycles: tuple[str, ...]
    kind: ClassVar[str] = "time"

    @classmethod
    def learned(cls, values: np.ndarray, weight: np.ndarray, kind: str, cycles: tuple[str, ...]) -> Self:
        days, span = Numbers.learned(values, weight, kind), np.nanmax(values) - np.nanmin(values)
        has_hours = bool(np.any(values % 1.0 > 0))
        seen = (one for one in cycles if span >= PERIODS[one] or len(cycles) == 1)
        return cls(days, tuple(one for one in seen if one != "day" or has_hours))

    @property
    def numbers(self) -> list[int]:
        n_waves = 3 * len(self.cycles)
        return [0, *range(1 + self.days.may_lack, 1 + self.days.may_lack + n_waves)]

    def names(self, name: str) -> list[str]:
        told = ("part", "cosine", "sine")
        return [*self.days.names(name), *(f"{name}_{one}_of_{cycle}" for cycle in self.cycles for one in told)]

    def values(self, column: Any) -> np.ndarray:
        from manyclass.data.frames import as_times, numbers

        column = as_times(column)
        told, found = [self.days.values(column)], numbers(column).astype(np.float64, copy=False)
        for cycle in self.cycles:
            part = (found / PERIODS[cycle]) % 1.0
            angle = 2.0 * np.pi * part
            columns = [12.0**0.5 * (part - 0.5), np.cos(angle), np.sin(angle)]
            told.append(np.nan_to_num(np.stack(columns, axis=1)))
        return np.concatenate(told, axis=1)


@dataclass(frozen=True)
class Categories:
    """A column of 0 and 1 for each text that is frequent, one for all others, and one for what is missing."""

    known: tuple[str, ...]
    has_others: bool
    may_lack: bool
    kind: ClassVar[str] = "text"
    numbers: ClassVar[list[int]] = []

    @classmethod
    def learned(cls, values: list[str], codes: np.ndarray, weight: np.ndarray, fewest: int, most: int | None) -> Self:
        present = codes >= 0
        count = np.bincount(codes[present], weight[present], len(values))
        n_rows = np.bincount(codes[present], minlength=len(values))
        # Rows are enough where all weights are small, as where they sum to one.
        is_frequent = np.maximum(count, n_rows) >= fewest
        order = sorted(np.flatnonzero(is_frequent), key=lambda place: (-count[place], values[place]))
        frequent = [values[place] for place in order[:most]]
        n_present = np.count_nonzero(n_rows)
        return cls(tuple(sorted(frequent)), len(frequent) < int(n_present), bool((codes < 0).any()))

    def names(self, name: str) -> list[str]:
        others = ["infrequent"] * self.has_others + ["missing"] * self.may_lack
        return [f"{name}_{one}" for one in (*self.known, *others)]

    def values(self, column: Any) -> Any:
        from manyclass.data.frames import texts

        values, codes = texts(column)
        n_known = len(self.known)
        places = {text: place for place, text in enumerate(self.known)}
        other = n_known if self.has_others else -1
        missing = n_known + self.has_others if self.may_lack else -1
        columns = np.array([*(places.get(text, other) for text in values), missing])[codes]
        is_told = columns >= 0
        indptr = np.concatenate([[0], np.cumsum(is_told)])
        shape = (len(columns), n_known + self.has_others + self.may_lack)
        return as_csr(np.ones(indptr[-1], np.float32), columns[is_told], indptr, shape)


@dataclass(frozen=True)
class Words:
    """Words and pairs of neighbouring words of texts, weighted by how rare they are (TF-IDF).

    Of texts that are not too many also triples of neighbouring characters, by which misspelt or inflected words have
    something in common. Texts that most rows share with others are names, which their words may not tell: these are
    categories besides.
    """

    words: Any
    characters: Any
    whole: Categories | None
    kind: ClassVar[str] = "text"
    numbers: ClassVar[list[int]] = []

    @classmethod
    def learned(cls, values: list[str], codes: np.ndarray, fewest: int, whole: Categories) -> Self:
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts, known = _repeated(values, codes), set(whole.known)
        n_characters, n_shared = sum(map(len, texts)), sum(text in known for text in texts)
        options: dict[str, Any] = {"min_df": fewest, "sublinear_tf": True, "dtype": np.float32}
        longest = 2 if n_characters < MOST_FOR_PAIRS else 1
        words = TfidfVectorizer(ngram_range=(1, longest), token_pattern=WORD.pattern, **options).fit(texts)
        characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), **options)
        return cls(
            words,
            characters.fit(texts) if n_characters < MOST_FOR_TRIPLES else None,
            whole if n_shared > SHARED * len(texts) else None,
        )

    @staticmethod
    def serve(values: list[str], codes: np.ndarray, times: float = 1.0) -> bool:
        """Whether the texts of `times` as many rows are many, and of several words."""
        n_words = np.array([*map(len, map(WORD.findall, values)), 0])
        return _are_many(codes, times) and bool(n_words[codes[codes >= 0]].mean() >= WORDS)

    def names(self, name: str) -> list[str]:
        triples = [] if self.characters is None else self.characters.get_feature_names_out()
        return [
            *(f"{name}_{word}" for word in self.words.get_feature_names_out()),
            *(f"{name}_characters_{one}" for one in triples),
            *([] if self.whole is None else self.whole.names(name)),
        ]

    def values(self, column: Any) -> Any:
        from manyclass.data.frames import beside, texts

        told = _repeated(*texts(column)) or [""]  # as there is no TF-IDF of no texts
        parts = [one.transform(told)[: len(column)] for one in (self.words, self.characters) if one is not None]
        parts += [] if self.whole is None else [self.whole.values(column)]
        return beside(parts)


def _repeated(values: list[str], codes: np.ndarray) -> list[str]:
    known = [*values, ""]  # the last one for what is missing
    return [known[code] for code in codes]


@dataclass(frozen=True)
class Mixed:
    """Numbers in some rows and words in others, such as "unknown": each is missing where the other is."""

    amounts: Numbers
    words: Categories
    kind: ClassVar[str] = "text"

    @classmethod
    def learned(cls, column: Any, weight: np.ndarray, fewest: int, most: int | None) -> Self:
        from manyclass.data.frames import NUMBER, numbers, numbers_and_words, texts

        amounts, words = numbers_and_words(column)
        values, codes = texts(words)
        whole = Categories.learned(values, codes, weight, fewest, most)
        return cls(Numbers.learned(numbers(amounts), weight, NUMBER), replace(whole, may_lack=False))

    @staticmethod
    def serve(values: list[str], codes: np.ndarray, times: float = 1.0) -> bool:
        """Whether most rows have numbers, many different ones, and the others few different words."""
        are_numbers = np.array([*map(is_number, values)], dtype=bool)
        present = codes[codes >= 0]
        numbers = present[are_numbers[present]]
        n_words = len(np.unique(present[~are_numbers[present]]))
        has_few_words = 0 < n_words <= (times * len(present)) ** 0.5  # without any the numbers are said to be text
        return has_few_words and len(numbers) >= MOSTLY * len(present) and _are_many(numbers, times)

    @property
    def numbers(self) -> list[int]:
        return self.amounts.numbers

    def names(self, name: str) -> list[str]:
        return [*self.amounts.names(name), *self.words.names(name)]

    def values(self, column: Any) -> np.ndarray:
        from manyclass.data.frames import numbers_and_words

        amounts, words = numbers_and_words(column)
        return np.concatenate([self.amounts.values(amounts), self.words.values(words).toarray()], axis=1)


def _are_many(codes: np.ndarray, times: float) -> bool:
    """Whether different texts of `times` as many rows are more than their root.

    The next row has a new text as likely as a row has one of its own (Good and Turing).
    """
    count = np.bincount(codes[codes >= 0])
    n_texts = np.count_nonzero(count) + (times - 1.0) * np.count_nonzero(count == 1)
    return bool(n_texts > (times * count.sum()) ** 0.5)


Column = Numbers | Times | Categories | Words | Mixed


def learned(column: Any, weight: np.ndarray, fewest: int, most: int | None, times: float = 1.0) -> Column:
    """What to make of a column, of rows that all count, and may be a sample of `times` as many.

    Raises
    ------
    ValueError
        With what the column holds that no number can be made of.
    """
    from manyclass.data.frames import as_times, cycles_of, is_category, numbers, texts
    from manyclass.data.readers.kinds import TEXT, kind_of

    if column.null_count == len(column):
        return Categories((), False, False)
    column = as_times(column)
    if kind_of(column.type) != TEXT:
        found = numbers(column)
        if np.isnan(found).all():
            return Categories((), False, False)
        kind, cycles = kind_of(column.type), cycles_of(column.type)
        return Times.learned(found, weight, kind, cycles) if cycles else Numbers.learned(found, weight, kind)
    values, codes = texts(column)
    if not is_category(column) and Mixed.serve(values, codes, times):
        return Mixed.learned(column, weight, fewest, most)
    whole = Categories.learned(values, codes, weight, fewest, most)
    if Words.serve(values, codes, times):
        try:
            return Words.learned(values, codes, fewest, whole)
        except ValueError:  # where no word is frequent
            pass
    return whole
