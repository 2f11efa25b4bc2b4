"""Damage to files: one to three changes, to the file, to what it holds compressed, or to a member of an archive."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
import warnings
import zipfile
from functools import partial
from random import Random

_NUMBERS = (0, 1, -1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**53, 2**63 - 1, -(2**63))
_SPACED = b"""
    nan -inf 1e999 1e-999 0x1p3 1_0 01 + ? NA null None true True False () [] {} (1,) (4,3,0) %s %d%n \\ ' " |
    '|O' '<U0' 'V0' 'V8' '<c16' '<M8[s]' '<f2' '>i8' '?' [('a','<f8')] fortran_order csr csc coo bsr dia foo
    {7 1} {-1 1} 1:1 qid:1 5:nan # @data numeric string
    builtins dict set numpy eval ndarray __id__ NdArrayNode ListNode JsonNode
    &a; &#0; <label/> label target class y a X
"""
_TOKENS = (
    *(str(number).encode() for number in (*_NUMBERS, 10**30)),
    *_SPACED.split(),
    *(b"", b",", b";", b"\t", b"\r", b"\n", b"\n\n", b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[31m"),
    *(b"@attribute a {0,1}", b"@attribute string", b"@relation 'r: -C 9'", b"{0 1, 0 2}", b"<!ENTITY a 'b'>"),
)
_BRACKETS = (b"(", b"[", b"{", b"-", b"'", b'"', b"<a>", b'{"a":', b",", b" ")
_WORD = re.compile(rb"[\w.+-]+")
_PADDING = re.compile(rb" {8,}")
_PACKINGS = (gzip.compress, bz2.compress, partial(lzma.compress, preset=0))


def mutated(valid: list[bytes], rng: Random) -> bytes:
    """One of the valid files, damaged."""
    content = rng.choice(valid)
    if content.startswith(b"PK") and rng.random() < 0.7:
        content = _with_damaged_member(content, rng)
    else:
        content = _damaged(content, valid, rng)
    if rng.random() < 0.1:
        content = rng.choice(_PACKINGS)(content)
        if rng.random() < 0.5:
            content = _damaged(content, valid, rng)
    return content


def _damaged(content: bytes, valid: list[bytes], rng: Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not content:
            break
        content = rng.choice(_CHANGES)(content, rng, valid)
    return content


def _with_damaged_member(content: bytes, rng: Random) -> bytes:
    """The archive with one member changed and its checksum right, or the flags and sizes of its headers changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [[info.filename, archive.read(info), info.compress_type] for info in archive.infolist()]
    if rng.random() < 0.2:
        return _zip_headers(content, rng, [])
    chosen = rng.choice(members)
    match rng.randrange(10):
        case 0:
            members.remove(chosen)
        case 1:
            chosen[0] = rng.choice(("", "/etc/passwd", "../X.npy", "X", "y.npy", "a.txt", "indptr.npy", "\x1b.npy"))
        case 2:
            chosen[1] = rng.choice(members)[1]
        case _:
            chosen[1] = _damaged(chosen[1], [member[1] for member in members], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name
        for name, data, packing in members:
            archive.writestr(zipfile.ZipInfo(name), data, packing)
    return buffer.getvalue()


def _span(content: bytes, rng: Random) -> slice:
    start = rng.randrange(len(content))
    return slice(start, start + rng.choice((1, 1, 2, 4, 8, 64, 1024)))


def _spliced(content: bytes, where: slice, piece: bytes) -> bytes:
    return content[: where.start] + piece + content[where.stop :]


def _byte(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    start = rng.randrange(len(content))
    return _spliced(content, slice(start, start + 1), bytes([rng.choice((rng.randrange(256), 0, 255, 127, 128))]))


def _bit(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    start = rng.randrange(len(content))
    return _spliced(content, slice(start, start + 1), bytes([content[start] ^ (1 << rng.randrange(8))]))


def _cut(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    return content[: rng.randrange(len(content))]


def _deleted(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    return _spliced(content, _span(content, rng), b"")


def _repeated(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    where = _span(content, rng)
    return _spliced(content, where, content[where] * rng.choice((2, 2, 3, 100)))


def _integer(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    """An extreme integer, or one off what is there, in place of 1, 2, 4 or 8 bytes."""
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    start = rng.randrange(len(content))
    if rng.random() < 0.5:
        start -= start % size
    old = int.from_bytes(content[start : start + size], order)
    new = rng.choice((*_NUMBERS, old + 1, old - 1, 2 * old)) % 256**size
    return _spliced(content, slice(start, start + size), new.to_bytes(size, order))


def _word(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    """A token in place of a word or number; the padding after it gives way, so that lengths written before hold."""
    start = rng.randrange(len(content))
    found = _WORD.search(content, start) or _WORD.search(content)
    if found is None:
        return content
    token = rng.choice(_TOKENS)
    padding = _PADDING.search(content, found.end(), found.end() + 256)
    if padding is not None:
        spaces = b" " * max(0, padding.end() - padding.start() + found.end() - found.start() - len(token))
        content = _spliced(content, slice(*padding.span()), spaces)
    return _spliced(content, slice(*found.span()), token)


def _token(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    return _spliced(content, slice(start, start), rng.choice(_TOKENS))


def _nested(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    start = rng.randrange(len(content) + 1)
    return _spliced(content, slice(start, start), rng.choice(_BRACKETS) * rng.choice((2, 50, 1500, 20_000)))


def _crossed(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    other = rng.choice(valid)
    return content[: rng.randrange(len(content))] + other[rng.randrange(len(other) + 1) :]


def _lines(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    lines = content.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def _zip_headers(content: bytes, rng: Random, valid: list[bytes]) -> bytes:
    """Version, flags (encryption), method, sizes or name lengths in a header of a zip archive."""
    headers = [match.start() for match in re.finditer(rb"PK\x01\x02|PK\x03\x04|PK\x05\x06", content)]
    if not headers:
        return _byte(content, rng, valid)
    start = rng.choice(headers) + rng.randrange(4, 30, 2)
    value = rng.choice((0, 1, 0x41, 0x2000, 8, 12, 14, 93, 99, 0x7FFF, 0xFFFF, rng.randrange(1 << 16)))
    return _spliced(content, slice(start, start + 2), struct.pack("<H", value))


_CHANGES = (
    _byte,
    _byte,
    _bit,
    _bit,
    _cut,
    _deleted,
    _repeated,
    _integer,
    _integer,
    _word,
    _word,
    _word,
    _token,
    _token,
    _nested,
    _crossed,
    _lines,
    _zip_headers,
)
