"""Damage to files, by the thousand and from a seed: what disks, networks, editors and enemies do to them."""

import hashlib
import random
import re
import zipfile

from adom.errors import InputError
from adom.util.checked_npz import DIGEST, SEAL


def mutants(content, count, seed=0):
    """Yield damaged copies of a file's bytes, none of them the same as it."""
    chance = random.Random(seed)
    made = 0
    while made < count:
        data = bytearray(content)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            data = chance.choice(DAMAGES)(data, chance)
        if bytes(data) != content:
            made += 1
            yield bytes(data)


def overwrite(path, content):
    """Give a file other bytes; a file system takes its time for each that is emptied first."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def members(path):
    """The arrays of a file as bytes, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive(path, parts):
    """Write an archive whose seal is in order, whatever it holds."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.comment = SEAL + b"0" * DIGEST
        for name, content in parts:
            made.writestr(name, content)
    return sealed(path, path.read_bytes()[:-DIGEST])


def sealed(path, content):
    """Write bytes and their checksum."""
    overwrite(path, content + hashlib.sha256(content).hexdigest().encode())
    return path


def attempt(call):
    """Return what a call gives, or None and the line that refuses it."""
    try:
        return call(), ""
    except InputError as error:
        return None, str(error)


def _stretch(data, chance):
    begin = chance.randrange(len(data) + 1)
    return slice(begin, min(len(data), begin + chance.choice((1, 2, 4, 8, 64, 512))))


def cut(data, chance):
    return data[: chance.randrange(len(data) + 1)]


def flip(data, chance):
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def blank(data, chance):
    place = _stretch(data, chance)
    data[place] = bytes([chance.choice((0, 0xFF, 0x20))]) * len(data[place])
    return data


def drop(data, chance):
    del data[_stretch(data, chance)]
    return data


def repeat(data, chance):
    place = _stretch(data, chance)
    data[place] = data[place] * chance.choice((2, 3))
    return data


def swap(data, chance):
    one, other = _stretch(data, chance), _stretch(data, chance)
    data[one], data[other] = data[other], data[one]
    return data


def append(data, chance):
    return data + chance.choice((b"\0", b"\n", b"PK\x05\x06" + bytes(18), chance.randbytes(30)))


def number(data, chance):
    """Put another number in the place of one: a size, a shape, a type."""
    found = list(re.finditer(rb"\d+", data))
    if found:
        place = chance.choice(found)
        data[place.start() : place.end()] = chance.choice((b"0", b"-1", b"7", b"1e999", b"9" * 19, b"9" * 5000))
    return data


def little(data, chance):
    """Set a field of four bytes, as archives keep their sizes and places in, to an extreme."""
    if len(data) > 4:
        begin = chance.randrange(len(data) - 4)
        data[begin : begin + 4] = chance.choice((0, 1, 2**16, 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
    return data


DAMAGES = (cut, flip, flip, blank, drop, repeat, swap, append, number, little)
