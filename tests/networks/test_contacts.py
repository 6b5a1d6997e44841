"""Temporal contact lists."""

import numpy as np
import pandas as pd
import pytest

from adom.errors import InputError, InputTypeError
from adom.networks import from_contacts


def rounds(network):
    return [network.edges(int(g)).tolist() for g in network.order]


TEXT = """\
# who met whom
t u v
100 7 3
100,3,5

119\t5 7   # late in the window
140 3 5
145 5 7
146 7 5
"""


def test_contacts_are_grouped_by_window_and_empty_windows_skipped(tmp_path):
    file = tmp_path / "contacts.txt"
    file.write_text(TEXT)
    network = from_contacts(file, window=20)
    assert network.nodes == 3  # 3, 5, 7 become 0, 1, 2
    assert rounds(network) == [[[0, 1], [0, 2], [1, 2]], [[0, 1], [1, 2]]]
    assert rounds(from_contacts(str(file), window=1000)) == [[[0, 1], [0, 2], [1, 2]]]
    assert network.recipe["window"] == 20
    assert network.recipe["contacts"] == 6


def test_order_of_lines_does_not_matter(tmp_path):
    rows = [(3, 0, 1), (0, 0, 1), (0, 1, 2), (3, 1, 2), (3, 0, 2)]
    assert rounds(from_contacts(rows)) == [[[0, 1], [1, 2]], [[0, 1], [0, 2], [1, 2]]]
    assert rounds(from_contacts(np.array(rows))) == rounds(from_contacts(rows[::-1]))


def test_windows_that_are_alike_share_a_graph():
    network = from_contacts([(0, 0, 1), (1, 0, 1), (2, 1, 0)])
    assert (network.graphs, network.period) == (1, 3)


def test_given_nodes_keep_their_ids_and_repair_chains_the_components():
    network = from_contacts([(0, 3, 1), (5, 2, 4)], nodes=6, repair=True)
    assert network.nodes == 6
    assert rounds(network) == [
        [[0, 1], [1, 2], [1, 3], [2, 4], [4, 5]],
        [[0, 1], [1, 2], [2, 3], [2, 4], [3, 5]],
    ]


def test_contacts_that_never_connect_all_nodes_are_named():
    assert from_contacts([(0, 0, 1), (0, 1, 2), (9, 0, 1)]).window == 2
    message = r"all links of rounds 0 to 1 together leave 2 components, \{0, 1\} and \{2, 3\}; no message"
    with pytest.raises(InputError, match=message):
        from_contacts([(0, 0, 1), (9, 2, 3)])


def test_a_repair_says_how_many_links_it_added():
    rows = [(0, 3, 1), (5, 2, 4)]
    network = from_contacts(rows, nodes=6, repair=True)
    assert network.recipe["links_added"] == sum(len(network.edges(g)) for g in network.order) - len(rows) == 8
    assert "links_added" not in from_contacts([(0, 0, 1)]).recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t u v\n1 2 3\n1 2\n", "line 3: expected 3 columns `t u v`, got 2"),
        ("1 2 3\n1 2 3 4\n", "line 2: expected 3 columns `t u v`, got 4"),
        ("1 2 x\n", "line 1: expected whole numbers `t u v`, got 'x'"),
        ("1 2 3\nt u v\n", "line 2: expected whole numbers `t u v`, got 't'"),
        ("1 2 3\n\n# note\n1.5 2 3\n", "line 4: expected whole numbers `t u v`, got '1.5'"),
        ("1 2 1_0\n", "line 1: expected whole numbers `t u v`, got '1_0'"),
        ("1 2 99999999999999999999\n", "line 1: expected whole numbers"),
        ("1 2 2\n", "line 1: node 2 meets itself"),
        ("# nothing\n", "holds no contacts"),
    ],
)
def test_malformed_file_is_named_with_line_and_reason(tmp_path, text, message):
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        from_contacts(file)
    assert "bad.txt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*missing.txt: No such file or directory"):
        from_contacts(tmp_path / "missing.txt")
    with pytest.raises(InputError, match="Is a directory"):
        from_contacts(tmp_path)
    binary = tmp_path / "binary.npz"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not UTF-8 text"):
        from_contacts(binary)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: from_contacts(5), InputTypeError, "contacts must be a path or rows"),
        (lambda: from_contacts([]), InputError, "holds no contacts"),
        (lambda: from_contacts([(0, 1)]), InputError, "row 0: expected 3 columns"),
        (lambda: from_contacts([(0, 1, 2), 7]), InputError, "row 1: expected three whole numbers"),
        (lambda: from_contacts([(0, 1, 2.5)]), InputError, "row 0: expected three whole numbers"),
        (lambda: from_contacts([(0, 1, float("inf"))]), InputError, "row 0: expected three whole numbers"),
        (lambda: from_contacts([(0, 4, 4)]), InputError, "row 0: node 4 meets itself"),
        (
            lambda: from_contacts([(0, 1, 2)], window=0),
            InputError,
            "window must be a whole number of at least 1",
        ),
        (lambda: from_contacts([(0, 1, 2)], nodes=2), InputError, "names node 2, but nodes=2 allows 0 to 1"),
    ],
)
def test_bad_rows_are_refused_in_one_line(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_data_frame_of_contacts_is_its_rows():
    frame = pd.DataFrame({"v": [8, 9, 7], "t": [0, 0, 20], "place": list("abc"), "u": [7, 8, 9]})
    plain = from_contacts([(0, 7, 8), (0, 8, 9), (20, 9, 7)], window=20, repair=True)
    assert from_contacts(frame, window=20, repair=True).recipe == plain.recipe
    with pytest.raises(InputError, match=r"needs the columns t, u and v, once each, got .*'w'.*rename"):
        from_contacts(frame.rename(columns={"v": "w"}))
    with pytest.raises(InputError, match=r"row 1: expected three whole numbers .*nan"):
        from_contacts(pd.DataFrame({"t": [0, 1], "u": [1, np.nan], "v": [2, 3]}))


def test_a_window_longer_than_time_is_refused():
    with pytest.raises(InputError, match=f"window must be at most {2**62}, got {10**30}; it is a length of time"):
        from_contacts([(0, 1, 2)], window=10**30)
    assert from_contacts([(-(10**17), 1, 2), (10**17, 1, 2)], window=2**62).period == 1
