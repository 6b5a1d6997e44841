"""The documents as tests read them: their blocks of code, and the commands in them."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCUMENTS = sorted([README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/api").glob("*.md")])
LANGUAGES = ("python", "sh", "toml", "text", "{toctree}", "{include}", "{eval-rst}")
"""What a block may be: run, parsed as commands, read as settings, output to look at, or a directive of the site."""
PYTHON = ("", "mpi", "data")
"""What may stand behind `python`: nothing, what mpirun starts, what needs the paper's data sets."""


class Block(NamedTuple):
    language: str
    words: str
    text: str
    line: int


def blocks(path, *languages):
    """Return the fenced blocks of a document, all or those in some languages."""
    found, opened = [], None
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if opened is None and line.startswith("```"):
            language, _, words = line.removeprefix("```").partition(" ")
            opened = Block(language, words, "", number)
        elif opened is not None and line == "```":
            found.append(opened)
            opened = None
        elif opened is not None:
            opened = opened._replace(text=opened.text + line + "\n")
    assert opened is None, f"{path.name}: the block of line {opened.line} has no end"
    return [block for block in found if not languages or block.language in languages]


def commands(text):
    """Return the words of every command in a block: no comments, pipes taken apart, lines that go on joined."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("#"):
            continue
        words = shlex.split(line, comments=True)
        while "|" in words:
            found.append(words[: words.index("|")])
            words = words[words.index("|") + 1 :]
        found.append(words)
    return [words for words in found if words]


def spans(path):
    """Return the commands that stand within a line, such as `adom verify`; FILE and N stand for something."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    found = [re.sub(r"\bN\b", "1", span) for span in re.findall(r"`(adom [^`\n]+)`", text)]
    return [shlex.split(span) for span in found if not re.match(r"adom [A-Z]", span)]
