"""The ledger as a whole: from a folder's files to pages and back, the same every time."""

import re
from dataclasses import replace

import pytest

from adom.errors import InputError
from adom.paper import findings, ledger
from adom.paper.claims import CLAIMS
from adom.paper.evidence import table_of_runs
from support.made import absent, four, made, panel, saved, seeds, verified


def outcomes(protocol="unit"):
    """Two panels won and one lost, an oracle that fails, data split by label, a verification, a missing data set."""
    found = [verified(0.9)]
    for name, adom in {"one": 200, "two": 300, "three": 800}.items():
        place = panel("kappa", name)
        found += four(place, adom, 400, 900, 900, protocol=protocol, floats=3.0)
    place = panel("kappa", "four")
    found += seeds(place, "adom", -300, protocol=protocol, oracle="gd:1")
    found += seeds(place, "mudag", 400, protocol=protocol)
    found += seeds(place, "adom", 250, protocol=protocol, variant="exact", oracle="exact", gradients=9.0)
    found += seeds(place, "adom", 260, protocol=protocol, variant="auto", oracle="auto", gradients=3.0)
    place = panel("heterogeneity", "chi")
    for variant, factor in (("", 1), ("split-label", 2)):
        found += seeds(place, "adom", 200 * factor, protocol=protocol, variant=variant)
        found += seeds(place, "apm", 400, protocol=protocol, variant=variant)
    return [*found, absent(panel("real_kappa"), "adom", "w6a is missing | get it", protocol=protocol)]


@pytest.fixture
def folder(tmp_path):
    return saved(outcomes(), tmp_path)


def findings_of(found):
    return findings.compute(table_of_runs(found))


def compute(found, **more):
    return ledger.compute(table_of_runs(found), **more)


def test_every_claim_has_an_entry_under_every_protocol_that_was_run():
    found = compute(outcomes() + outcomes("tuned"))
    assert {one.claim for one in found.entries} == set(CLAIMS)
    for claim in CLAIMS.values():
        wanted = ["theory"] if claim.protocols == ("theory",) else ["theory", "unit", "tuned"]
        assert [one.protocol for one in found.entries if one.claim == claim.name] == wanted
    assert found.find("best-over-kappa", "unit").count == "2 of 4 panels"
    counts = {
        row[0]: dict(zip(found.counts().columns[1:], map(int, row[1:]), strict=True)) for row in found.counts().rows
    }
    assert counts["unit"]["partly"] >= 1
    assert sum(counts["unit"].values()) == len(CLAIMS) - 2
    with pytest.raises(InputError, match="no entry 'best-over-kappa' under 'mine'"):
        found.find("best-over-kappa", "mine")


def test_the_folder_gives_the_same_ledger_as_the_runs_and_so_does_the_file(folder):
    found = ledger.write(folder)
    direct = compute(outcomes(), commit="abc123", command=f"adom ledger {folder.name}")
    assert found == direct == ledger.read(folder)
    first = {name: (folder / name).read_bytes() for name in ("ledger.json", "ledger.md")}
    assert ledger.write(folder) == found
    assert first == {name: (folder / name).read_bytes() for name in first}
    assert not list(folder.glob(".*.tmp"))


def test_verdicts_follow_the_files_not_the_ledger_that_is_there(folder):
    before = ledger.write(folder).find("best-over-kappa", "unit")
    changed = [made(one.job.panel, "adom", 100, seed=one.job.seed) for one in outcomes()
               if (one.job.panel.name, one.job.method, one.job.variant) == ("three", "adom", "")]  # fmt: skip
    for one in changed:
        one.result.save(folder / "results" / f"{one.job.key}.npz")
    after = ledger.write(folder).find("best-over-kappa", "unit")
    assert (before.holding, after.holding) == (2, 3)


def test_the_page_has_verdict_rule_evidence_and_where_it_came_from(folder):
    ledger.write(folder)
    page = (folder / "ledger.md").read_text()
    assert "commit abc123" in page
    assert "the full size" in page
    assert f"`adom ledger {folder.name}`" in page  # and no folder of this machine
    assert re.search(
        r"\| \*\*partly\*\* \| best-over-kappa \| unit \| 2 of 4 panels \| .*best rival/ADOM: median", page
    )
    assert "w6a is missing \\| get it" in page
    for claim in CLAIMS.values():
        assert f"### {claim.name}: " in page
        assert claim.rule in page
    for block in re.findall(r"(?:^\|.*\n)+", page, re.M):  # every table has rows as wide as its head
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block


def test_entries_of_one_claim_only():
    found = compute(outcomes())
    entry = found.find("best-over-kappa", "unit")
    assert (entry.verdict, entry.count) == ("partly", "2 of 4 panels")
    assert entry.text.startswith("best rival/ADOM: median")
    assert "w6a is missing" in found.find("best-on-real-data", "unit").text
    assert {one.claim for one in found.of("best-over-kappa").entries} == {"best-over-kappa"}
    with pytest.raises(InputError, match="no claim 'kapp'"):
        found.of("kapp")


def test_broken_files_are_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"plan.json"):
        ledger.write(tmp_path)
    with pytest.raises(InputError, match=r"cannot read .*ledger.json.*writes it"):
        ledger.read(tmp_path)
    for text in ("{", "[]", '{"format": "other"}', '{"format": "adom-ledger-1"}'):
        (tmp_path / "ledger.json").write_text(text)
        with pytest.raises(InputError) as caught:
            ledger.read(tmp_path)
        assert "\n" not in str(caught.value)


def test_findings_are_what_the_runs_say():
    found = outcomes("tuned") + [one for one in outcomes() if one.job.panel.figure == "heterogeneity"]
    steps, wins, growth, nothing, split, floats, rule = findings_of(found)
    assert growth.text == nothing.text == "There are no such runs."

    assert "fails" not in steps.text
    assert "Of 1 panels" in steps.text
    assert "`auto` was run in 1 of these and meets the target in 1." in steps.text
    (row,) = steps.table.rows
    assert row[:6] == ("tuned", "kappa four", "100", "30", "gd:1", "3 of 3 seeds (3 diverge)")
    assert row[6:] == ("inf [inf, inf]", "260 [260, 260]", "250 [250, 250]", "inf [inf, inf]", "780 [780, 780]")

    assert wins.table.rows == [("tuned", "kappa", "4", "adom 2, mudag 2", "0.917 [0.4, 2]")]
    assert wins.text.startswith("Under `tuned`, of 4 panels: adom 2, mudag 2.")

    ratios = {row[:3]: row[-1] for row in split.table.rows}
    assert ratios["tuned", "heterogeneity chi", "adom"] == "2 [2, 2]"
    assert ratios["unit", "heterogeneity chi", "apm"] == "1 [1, 1]"

    assert [row[0] for row in floats.table.rows] == ["tuned"]
    assert "floats instead of rounds change the winner in 0 of 4 panels" in floats.text

    assert rule.table.rows[0][:4] == ("geometric", "up to 100", "up to 50", "adom 2, mudag 2")
    assert rule.text.startswith("Parameters `tuned`.")


def test_best_is_judged_by_one_rule_in_ledger_and_findings():
    undecided = four(panel("kappa", "five"), (200, 300, 450), 400, 900, 900)  # ahead in two seeds of three
    slow = four(panel("kappa", "six"), 8000, 16000, 16000, -500)  # nobody meets a target; ADOM's last error is least
    runs = table_of_runs([*outcomes(), *undecided, *slow])
    entry = ledger.compute(runs).find("best-over-kappa", "unit")
    assert (entry.count, entry.evidence["undecided"]) == ("3 of 6 panels", 1)
    ((*_, panels, best, factor),) = findings.winners(runs).table.rows
    assert (panels, best) == ("6", "adom 3, mudag 2, undecided 1")
    assert factor.split(" ")[0] == f"{entry.evidence['factor']:.3g}"


def test_findings_say_how_rounds_grow():
    found = []
    for kappa in (10.0, 100.0, 1000.0):
        found += seeds(panel("rates", f"kappa{kappa:g}", kappa=kappa), "adom", 10 * kappa**0.5, budget=10**4)
    section = findings.growing_rounds(table_of_runs(found))
    ((protocol, method, against, exponent, *rest),) = section.table.rows
    assert (protocol, method, against, rest) == ("unit", "adom", "kappa", ["0.5", "holds", "1e-08", "9"])
    assert exponent.startswith("0.50 [0.")
    assert section.text.startswith("Under `unit` rounds grow like: adom kappa^0.50; 1 of 1 exponents hold.")


def test_a_run_that_misses_the_target_is_never_the_cheapest():
    place = panel("chi", "one")
    met = seeds(place, "adom", 900, gradients=100.0, floats=100.0)
    missed = seeds(place, "mudag", 5000, gradients=0.01, floats=1.0)
    (row,) = findings.vectors(table_of_runs([*met, *missed])).table.rows
    assert row[1:] == ("adom 1", "adom 1", "adom 1")
    (row,) = findings.rule_of_thumb(table_of_runs([*met, *missed])).table.rows
    assert set(row[3:]) == {"adom 1"}


def test_all_methods_are_ranked_where_nothing_is_known():
    place = panel("kappa", "one")
    found = four(place, 300, 400, 900, -100, protocol="auto")
    found += seeds(place, "dnm", 200, protocol="auto", variant="others")
    found += four(panel("kappa", "two"), 300, 200, 400, 500, protocol="auto")  # the figure's own methods alone
    section = findings.nothing_known(table_of_runs(found))
    assert section.table.rows == [("kappa", "one", "1e-08", "dnm 200, adom 300, mudag 400, acc-dngd 900", "apm")]
    assert "of 1 panels with all methods: dnm 1." in section.text
    assert section.text.endswith("Of 27 runs under `auto` 3 diverged or grew: apm 3.")


def test_the_price_of_a_gradient_and_the_length_of_a_message_change_the_winner():
    place = panel("chi", "one", kappa=1000.0, chi=100.0)
    found = seeds(place, "adom", 200, gradients=1.0, floats=2.0) + seeds(
        place, "mudag", 300, gradients=0.01, floats=1.0
    )
    rule = findings.rule_of_thumb(table_of_runs(found))
    assert rule.table.rows == [
        ("geometric", "above 100", "above 50", "adom 1", "adom 1", "adom 1", "mudag 1", "mudag 1")
    ]
    floats = findings.vectors(table_of_runs(found))
    assert floats.table.rows == [("unit", "adom 1", "mudag 1", "mudag 1")]
    assert "change the winner in 1 of 1 panels" in floats.text
    assert "mudag 0.5" in floats.text


def test_findings_without_runs_say_so():
    for section in findings_of([]):
        assert not section.table.rows
        assert section.text
    assert findings_of([absent(panel(), "adom", "gone")])[1].table.rows == []


def test_findings_are_written(folder):
    ledger.write(folder)
    page = (folder / "findings.md").read_text()
    assert "abc123" in page
    assert page.count("\n## ") == 7


def test_an_interrupted_run_is_no_evidence():
    cut = [replace(one, result=replace(one.result, status="interrupted")) for one in seeds(panel(), "adom", 200)]
    assert compute(cut + seeds(panel(), "mudag", 400)).find("best-over-kappa", "unit").verdict == "not tested"
