"""The page of agents: what is served, to whom, and how it looks in a browser."""

import json
from http.client import HTTPConnection

import pytest

from adom.agents.live_page import Server, metrics
from adom.errors import InputError
from support.browser import Browser, program

EVIL = '"><img src=x onerror=alert(1)>'
PICTURE = {
    "agents": [
        {"name": "n0", "state": "runs", "round": 12, "rounds": 12, "links": ["n1"], "error": 1.5e-3, "chi": 7.6},
        {"name": "n1", "state": "runs", "round": 12, "rounds": 9, "links": ["n0"], "refused": {"not finite": 2}},
        {"name": "n2", "state": "hangs", "links": [], "bound": None},
    ],
    "links": [["n0", "n1", "up"], ["n1", "n2", "cut"], ["n2", "n0", "down"]],
    "events": ["1.0 s: n1 - n2 is cut", EVIL],
}


def get(port, path, host="127.0.0.1"):
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_what_is_served():
    with Server(0, lambda: PICTURE) as server:
        assert json.loads(get(server.port, "/status.json")[1]) == PICTURE
        assert get(server.port, "/metrics") == (200, metrics(PICTURE))
        assert "adom agents" in get(server.port, "/")[1]
        assert get(server.port, "/../agent.py")[0] == 404
        assert get(server.port, "/status.json", host="evil.example")[0] == 403  # a foreign page under another name
        with pytest.raises(InputError, match="cannot serve a page on port"):
            Server(server.port, lambda: PICTURE)


def test_counters_are_as_prometheus_reads_them():
    lines = metrics(PICTURE).splitlines()
    assert 'adom_rounds_total{agent="n1"} 9' in lines
    assert 'adom_refused_total{agent="n1",kind="not_finite"} 2' in lines
    assert [line for line in lines if line.startswith("adom_bound")] == ['adom_bound{agent="n2"} +Inf']
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


class _Address:
    """A page that is not a file."""

    def __init__(self, port):
        self._port = port

    def resolve(self):
        return self

    def as_uri(self):
        return f"http://127.0.0.1:{self._port}/"


@pytest.mark.skipif(program() is None, reason="no Chromium is installed; `apt-get install chromium` brings one")
def test_the_network_is_drawn_as_it_is_now(tmp_path):
    now = dict(PICTURE)
    browser = Browser(tmp_path)
    try:
        with Server(0, lambda: now) as server, browser.page(_Address(server.port)) as page:
            page.wait("document.querySelectorAll('circle').length === 3")
            assert page.run("[...document.querySelectorAll('line')].map((l) => l.className.baseVal)") == [
                "up",
                "cut",
                "down",
            ]
            assert page.run("document.querySelector('circle.hangs') !== null")
            assert page.run("document.getElementById('summary').textContent").startswith("2 of 3 agents run, 1 link")
            assert page.run("document.querySelector('tbody').rows[0].cells[5].textContent") == "0.00150"
            assert page.run("document.querySelector('#events li').textContent") == EVIL
            now = {**PICTURE, "links": [["n0", "n1", "cut"]]}
            page.wait("document.querySelectorAll('line.cut').length === 1")
            own = f"request: http://127.0.0.1:{server.port}/"
            assert [trouble for trouble in page.troubles() if not trouble.startswith(own)] == []
    finally:
        browser.close()
