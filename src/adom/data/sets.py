"""The paper's data sets: where they come from, and the checksums of their files."""

from dataclasses import dataclass

from ..errors import InputError, nearest

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
TUDATASET = "https://www.chrsmrrs.com/graphkerneldatasets"


@dataclass(frozen=True)
class Piece:
    """One text file of a data set; checksum and size are those of the unpacked text."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class DataSet:
    """A data set and its official page.

    Attributes
    ----------
    name : str
    what : str
        Description in one line.
    url : str
        The official file: plain, compressed, or a zip archive of the pieces.
    home : str
        Its subfolder of the data folder.
    pieces : tuple of Piece
    reference : str
    features : int or None
        Number of features of a sample; None for a network.
    """

    name: str
    what: str
    url: str
    home: str
    pieces: tuple[Piece, ...]
    reference: str
    features: int | None = None

    @property
    def file(self) -> str:
        """The name of the official file."""
        return self.url.rpartition("/")[2]

    @property
    def archive(self) -> bool:
        """Whether the official file is a zip archive."""
        return self.file.endswith(".zip")

    def piece(self, name: str) -> Piece:
        """Return the piece of that name."""
        return next(piece for piece in self.pieces if piece.name == name)


def _libsvm(file: str, what: str, sha256: str, size: int, features: int) -> DataSet:
    name = file.removesuffix(".bz2")
    piece = Piece(name, sha256, size)
    return DataSet(name, what, f"{LIBSVM}/{file}", "libsvm", (piece,), "Chang and Lin 2011", features)


_ALL = (
    _libsvm(
        "a6a",
        "census records, from UCI Adult",
        "6023becedbd392fdc6a62ad94b60c9363149370d4c57ef13949fcc765842a031",
        802_800,
        122,
    ),
    _libsvm("w6a", "web pages", "0db197939896da01e6677f8dc39fe824dffcb75c185bd681bb870d33c93c8f82", 1_202_812, 300),
    _libsvm(
        "ijcnn1.bz2",
        "IJCNN 2001 challenge, training and validation",
        "16506cad788cf7c9607454150ed1994788204bac2ff4c9cb3b320036b6950d3f",
        7_744_897,
        22,
    ),
    DataSet(
        "infectious_ct1",
        "face-to-face contacts at a museum, a network",
        f"{TUDATASET}/infectious_ct1.zip",
        "infectious_ct1",
        tuple(
            Piece(f"infectious_ct1_{part}.txt", sha256, size)
            for part, sha256, size in (
                ("A", "31a634ec463c96b2e51ebcdd705cd6a7605df1bf343d19820f1577775cd3f3ac", 987_976),
                ("graph_indicator", "7800f9938be8069f69c836747b9835146b1e47d1fa971078b74abf901a7d3f12", 34_600),
                ("edge_attributes", "148bdc1eec55330c738758323d61055adb97626e64b8be7374596a2abc84de7f", 261_864),
                ("graph_labels", "a364320cc96592a926a7875cdf235ba8d679a9721a68097757fd3b8ac8bafb8b", 400),
                ("node_labels", "dca29b79bc4f237fad247a64195979be5bdc2059febecf9b13b3d9b0bbfe804a", 80_789),
            )
        ),
        "Oettershagen et al. 2020; Morris et al. 2020",
    ),
)

SETS: dict[str, DataSet] = {data_set.name: data_set for data_set in _ALL}
"""All data sets by name."""

SAMPLES = tuple(data_set.name for data_set in _ALL if data_set.features is not None)
"""Names of the data sets of labelled samples."""


def find_set(name: str) -> DataSet:
    """Return the data set of that name.

    Examples
    --------
    >>> find_set("ijcnn1").file
    'ijcnn1.bz2'
    """
    if name not in SETS:
        raise InputError(f"no data set is called {name!r}; {nearest(name, SETS)}")
    return SETS[name]
