"""Machines that are none: network namespaces with a host name, a folder and an ssh server each."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

NAME = f"adom{os.getpid() % 100_000}"  # of the bridge, and of the namespaces with a number behind
SUBNET = f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"


def sh(*words, check=True):
    return subprocess.run([str(word) for word in words], check=check, capture_output=True, text=True)


@cache
def why_not():
    """Return why there can be none here, "" where there can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "unshare", "ssh", "ssh-keygen", "/usr/sbin/sshd") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not found: apt-get install iproute2 openssh-server"
    made = sh("ip", "netns", "add", f"{NAME}try", check=False)
    sh("ip", "netns", "del", f"{NAME}try", check=False)
    return "" if made.returncode == 0 else f"no network namespaces here: {made.stderr.strip()}"


needs_machines = pytest.mark.skipif(bool(why_not()), reason=why_not() or "they can be made")


@contextmanager
def machines(folder: Path, count: int):
    """Yield the addresses of machines and an ssh command; each sees its own `folder/machineN` as `folder/home`."""
    for name in ("key", "host"):
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
    agent = folder / "agent"
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    agent.write_text(f'#!/bin/sh\nexec ssh -i {folder}/key {options} "$@"\n')
    agent.chmod(0o755)
    (folder / "home").mkdir()
    Path("/run/sshd").mkdir(exist_ok=True)
    servers = []
    try:
        sh("ip", "link", "add", NAME, "type", "bridge")
        sh("ip", "addr", "add", f"{SUBNET}.1/24", "dev", NAME)
        sh("ip", "link", "set", NAME, "up")
        for number in range(count):
            servers.append(_start(folder, number))
        addresses = [f"{SUBNET}.{number + 10}" for number in range(count)]
        for address in addresses:
            _wait_for(agent, address)
        yield addresses, agent
    finally:
        for server in servers:
            server.terminate()
            server.wait(10)
        for number in range(count):
            sh("ip", "netns", "del", f"{NAME}-{number}", check=False)
        sh("ip", "link", "del", NAME, check=False)


def _start(folder, number):
    """Join a namespace to the bridge and start its ssh server."""
    space, outer = f"{NAME}-{number}", f"{NAME}v{number}"
    sh("ip", "netns", "add", space)
    sh("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
    sh("ip", "link", "set", outer, "master", NAME, "up")
    inside = ("ip", "-n", space)
    sh(*inside, "addr", "add", f"{SUBNET}.{number + 10}/24", "dev", "eth0")
    sh(*inside, "link", "set", "eth0", "up")
    sh(*inside, "link", "set", "lo", "up")
    settings = folder / f"sshd{number}"
    settings.write_text(
        f"ListenAddress {SUBNET}.{number + 10}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/key.pub\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
    )
    own = f"hostname machine{number}; mount --bind {folder}/machine{number} {folder}/home"
    script = f"{own} && exec /usr/sbin/sshd -D -e -f {settings}"
    return subprocess.Popen(
        ["ip", "netns", "exec", space, "unshare", "-u", "-m", "sh", "-c", script],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _wait_for(agent, address):
    for _ in range(100):
        if sh(agent, address, "true", check=False).returncode == 0:
            return
        time.sleep(0.1)
    raise TimeoutError(f"no ssh server at {address}")
