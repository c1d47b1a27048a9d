"""Downloads from a server on this machine: whole and unchanged, or nothing in the cache."""

import hashlib
import io
import os
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ciplearn._core.errors import InputError, MissingDataError
from ciplearn.datasets import adult as adult_download
from ciplearn.datasets import load_adult
from ciplearn.datasets.adult import Mirror, download, from_arff, from_zip
from tests.datasets.adult_sample import FULL, raw_files, raw_rows

N_TRAIN, N_TEST = 60, 30


def zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def arff(files):
    test = [line.rstrip(".") for line in files["adult.test"].decode().splitlines()[1:] if line]
    train = [line for line in files["adult.data"].decode().splitlines() if line]
    return "\n".join(["@relation adult", "@attribute age numeric", "@data", *test, *train, ""]).encode()


@pytest.fixture
def files():
    return raw_files(n_train=N_TRAIN, n_test=N_TEST)


@pytest.fixture(autouse=True)
def sample_instead_of_the_full_data(monkeypatch, files):
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(adult_download, "CHECKSUMS", sums)
    monkeypatch.setattr(adult_download, "_TEST_ROWS", N_TEST)


@pytest.fixture
def serve():
    """Serve answers by path; an answer is bytes, or (bytes, announced length)."""
    servers = []

    def start(answers):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                answer = answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                    return
                content, length = answer if isinstance(answer, tuple) else (answer, len(answer))
                self.send_response(200)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        base = f"http://127.0.0.1:{server.server_address[1]}"
        return (Mirror("UCI", f"{base}/adult.zip", from_zip), Mirror("OpenML", f"{base}/adult.arff", from_arff))

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def held(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_the_first_source_is_enough(serve, files, tmp_path):
    download(tmp_path / "cache", serve({"/adult.zip": zipped(files)}))
    assert held(tmp_path / "cache") == files


def test_the_second_source_gives_the_same_bytes(serve, files, tmp_path):
    download(tmp_path / "cache", serve({"/adult.arff": arff(files)}))
    assert held(tmp_path / "cache") == files


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda files: zipped(files | {"adult.test": files["adult.test"] + b"x"}), "checksum"),
        (lambda files: (zipped(files)[:-500], len(zipped(files))), "broke off"),
        (lambda files: zipped(files)[:-500], "not a zip file"),
        (lambda files: zipped({"readme": b""}), "lacks the files"),
        (lambda files: b"<html>sign in</html>", "not a zip file"),
    ],
    ids=["changed", "interrupted", "cut", "other archive", "a page"],
)
def test_a_bad_answer_leaves_nothing_and_the_next_source_is_asked(serve, files, tmp_path, answer, reason):
    bad = answer(files)
    with pytest.raises(MissingDataError, match=f"UCI: .*{reason}.*OpenML: Not Found.*CIPLEARN_DATA"):
        download(tmp_path / "cache", serve({"/adult.zip": bad}))
    assert held(tmp_path / "cache") == {}
    download(tmp_path / "cache", serve({"/adult.zip": bad, "/adult.arff": arff(files)}))
    assert held(tmp_path / "cache") == files


def test_without_a_connection_the_message_says_what_to_do(tmp_path):
    nowhere = (Mirror("UCI", "http://127.0.0.1:9/adult.zip", from_zip),)
    with pytest.raises(MissingDataError, match=r"refused.*pass it as path, or name the folder in CIPLEARN_DATA"):
        download(tmp_path / "cache", nowhere)
    assert not (tmp_path / "cache").exists()


def test_a_disk_that_fails_leaves_no_half_written_file(serve, files, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left on device; free"):
        download(tmp_path / "cache", serve({"/adult.zip": zipped(files)}))
    assert held(tmp_path / "cache") == {}


def test_loading_downloads_once_and_then_reads_the_cache(serve, files, tmp_path, monkeypatch):
    monkeypatch.delenv("CIPLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sources = serve({"/adult.zip": zipped(files)})
    asked = []
    monkeypatch.setattr("ciplearn.datasets.adult.download", lambda folder: (asked.append(1), download(folder, sources)))
    first, second = load_adult(missing="keep"), load_adult(missing="keep")
    assert asked == [1]
    assert first.source == second.source == str(Path(tmp_path) / "ciplearn" / "adult")
    assert len(first.train) == N_TRAIN


def test_the_second_source_as_published_is_in_the_raw_format(files):
    assert from_arff(arff(files))["adult.data"].decode().splitlines()[:N_TRAIN] == raw_rows(N_TRAIN, seed=0)


@pytest.mark.skipif(FULL is None, reason="CIPLEARN_DATA names no folder with the full files")
def test_both_sources_rebuild_the_full_files(monkeypatch):
    monkeypatch.undo()
    full = {name: (FULL / name).read_bytes() for name in adult_download.CHECKSUMS}
    for rebuilt in (from_zip(zipped(full)), from_arff(arff(full))):
        adult_download._check(rebuilt)
