"""A node that dies, and strangers at the ports that workers listen on."""

import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from ciplearn._core.errors import InputError
from ciplearn.scale import RayEngine
from ciplearn.scale import engines as module

JOB = """
import sys, time
from ciplearn._core.errors import CiplearnError
from ciplearn.scale import RayEngine

def each(item):
    time.sleep(0.5)
    return item

def train(workers):
    time.sleep(60)

engine = RayEngine(workers=2, scratch=sys.argv[2])
try:
    with engine.folder() as place:
        (place / "rows").write_text("kept while it runs")
        work = list(engine.each(each, range(200))) if sys.argv[1] == "each" else engine.train(train)
except CiplearnError as problem:
    sys.exit(f"said: {problem}")
"""


def children(parent):
    """Process ids and command lines of the processes that a process has started."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            status = (place / "stat").read_text().rpartition(")")[2].split()
            if int(status[1]) == parent:
                found[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["each", "train"])
def test_a_node_that_dies_ends_in_one_sentence_and_leaves_nothing(kind, tmp_path):
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    job = subprocess.Popen([sys.executable, "-c", JOB, kind, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not list(tmp_path.iterdir()) and time.monotonic() < end:
        time.sleep(0.2)
    time.sleep(8)
    (raylet,) = [pid for pid, words in children(job.pid).items() if "/raylet/raylet " in words]
    os.kill(raylet, signal.SIGKILL)
    said = job.communicate(timeout=120)[1]
    assert job.returncode == 1
    assert "said: The Ray node of this program is gone" in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class Meeting:
    """A training that waits for a stranger who has left, and then adds up what both workers hold."""

    left: Path

    def __call__(self, workers):
        import torch

        (self.left.parent / f"at-{workers.rank}").write_text("\n".join(listening()))
        while not self.left.exists():
            time.sleep(0.05)
        return float(workers.total(torch.ones(1)))


def listening():
    """Addresses and ports that this process listens on."""
    own = {os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.exists() or one.is_symlink()}
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                address, port = words[1].split(":")
                found.append(f"{address} {int(port, 16)}")
    return found


LOOPBACK = "0100007F"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_on_one_machine_meet_where_no_other_machine_comes(engine, tmp_path):
    import threading

    left = tmp_path / "left"
    found = []
    training = threading.Thread(target=lambda: found.append(engine.train(Meeting(left))))
    training.start()
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("at-*"))) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    first = [line.split() for line in (tmp_path / "at-0").read_text().splitlines()]
    ports = [int(port) for address, port in first if address == LOOPBACK]
    assert ports, first
    # The one that is left is Ray's own.
    assert len(first) - len(ports) <= 1, first
    for port in ports:
        # Noise at the port that the workers met on does not hold them up.
        with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
            stranger.sendall(secrets.token_bytes(1000))
    left.touch()
    training.join(timeout=60)
    assert found == [2.0]


@pytest.mark.parametrize("meet", ["nowhere", ":1", "host:", "host:0", "host:99999", "host:x"])
def test_a_place_to_meet_is_an_address_and_a_port(meet):
    with pytest.raises(InputError, match="meet must be an address and a port"):
        RayEngine(meet=meet)


def test_a_place_to_meet_that_is_taken_is_refused_in_a_sentence(engine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        other = RayEngine(workers=2, meet=f"127.0.0.1:{port}")
        with pytest.raises(InputError, match=f"Workers cannot meet at 127.0.0.1:{port}: "):
            other.train(Meeting(Path("/")))


def test_a_stranger_has_no_part_in_a_cluster_that_was_started_here(engine):
    import ray

    where = ray.get_runtime_context().gcs_address
    bare = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    code = f"import ray; ray.init(address={where!r}, log_to_driver=False); print('in')"
    tried = subprocess.run([sys.executable, "-c", code], env=bare, capture_output=True, text=True, timeout=120)
    assert tried.returncode != 0
    assert "in\n" not in tried.stdout


class Cluster:
    """The few calls of Ray that a check of nodes makes."""

    def __init__(self, *nodes):
        self.all = [
            {"NodeID": f"n{place}", "Alive": True, "Resources": {"CPU": cpus}, "answers": answers}
            for place, (cpus, answers) in enumerate(nodes)
        ]

    def nodes(self):
        return self.all

    def get_runtime_context(self):
        return self

    def get_node_id(self):
        return "n0"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([(4, False)], "The Ray node of this program is gone"),
        ([(1, True), (4, False)], "2 workers were asked for, but the cluster has 1 CPUs"),
        ([(1, True), (4, True)], None),
    ],
)
def test_nodes_that_do_not_answer_are_not_counted(monkeypatch, nodes, message):
    monkeypatch.setattr(module, "_started", lambda workers, address: Cluster(*nodes))
    monkeypatch.setattr(module, "_answers", lambda node: node["answers"])
    if message is None:
        assert len(RayEngine(workers=2)._nodes()) == 2
        return
    with pytest.raises(InputError, match=message):
        RayEngine(workers=2)
