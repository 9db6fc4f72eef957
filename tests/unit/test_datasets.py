"""Data sets by name: bundled, from a folder, from a cache filled over a loopback server that also fails on purpose."""

import bz2
import contextlib
import hashlib
import http.server
import socket
import threading

import numpy as np
import pytest
import scipy.sparse

from hyperjax import datasets

TRAIN = b"1 1:0.5 2:1\n2 1:-1 2:2\n2 1:3 2:1\n"
TEST = bz2.compress(b"2 1:0.25 3:4\n1 2:1\n")


class Server(http.server.BaseHTTPRequestHandler):
    """Serves what a test has put into `pages`: bytes, or bytes and the length it claims."""

    pages: dict[str, tuple[bytes, int]] = {}
    asked: list[str] = []

    def do_GET(self):
        self.asked.append(self.path)
        if self.path not in self.pages:
            self.send_error(404, "Not Found")
            return
        content, length = self.pages[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A source "toy" of two files on a loopback server, its checksums recorded, and an empty cache."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    monkeypatch.setenv(datasets.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "SOURCES", {"toy": (f"{base}/toy", f"{base}/toy.t.bz2")})
    digests = {
        f"{base}/{file}": hashlib.sha256(page).hexdigest() for file, page in (("toy", TRAIN), ("toy.t.bz2", TEST))
    }
    monkeypatch.setattr(datasets, "CHECKSUMS", digests)
    Server.pages = {"/toy": (TRAIN, len(TRAIN)), "/toy.t.bz2": (TEST, len(TEST))}
    Server.asked = []
    yield tmp_path / "cache"
    server.shutdown()
    thread.join()
    server.server_close()


def check(found):
    np.testing.assert_array_equal(found.X, [[0.5, 1, 0], [-1, 2, 0], [3, 1, 0]])
    np.testing.assert_array_equal(found.X_test, [[0.25, 0, 4], [0, 1, 0]])
    np.testing.assert_array_equal(found.y, [-1.0, 1, 1])
    np.testing.assert_array_equal(found.y_test, [1.0, -1])
    assert found.name == "toy" and found.y.dtype == np.float64


def test_nothing_is_fetched_unasked(site):
    with pytest.raises(FileNotFoundError, match="toy is not on this machine: pass download=True to fetch it from http"):
        datasets.load("toy")
    assert not Server.asked and not site.exists()


def test_a_download_is_kept_and_read_from_the_cache(site):
    check(datasets.load("toy", download=True))
    assert Server.asked == ["/toy", "/toy.t.bz2"]
    check(datasets.load("toy"))
    check(datasets.load("toy", download=True))
    assert len(Server.asked) == 2
    assert [path.name for path in site.iterdir()] == ["toy"]


def test_a_damaged_cache_is_seen_and_fetched_again(site):
    datasets.load("toy", download=True)
    (site / "toy" / "toy").write_bytes(TRAIN.replace(b"0.5", b"0.6"))
    with pytest.raises(FileNotFoundError, match="toy is damaged in the cache .*: pass download=True"):
        datasets.load("toy")
    check(datasets.load("toy", download=True))
    (site / "toy" / "toy.t.bz2").unlink()
    check(datasets.load("toy", download=True))
    check(datasets.load("toy"))


def refused(site, error, match, **options):
    with pytest.raises(error, match=match):
        datasets.load("toy", download=True, **options)
    assert not list(site.iterdir())


@pytest.mark.parametrize("page", ["/toy", "/toy.t.bz2"])
def test_bad_downloads_leave_nothing_behind(page, site):
    content = Server.pages[page][0]
    changed = bytes([content[0] ^ 1]) + content[1:]
    Server.pages[page] = (changed, len(changed))
    digest = hashlib.sha256(changed).hexdigest()
    refused(site, ValueError, rf"{page} has the SHA-256 {digest} and not [0-9a-f]{{64}}.*nothing was kept")
    Server.pages[page] = (content[:-5], len(content))
    refused(site, ConnectionError, rf"{page} (broke off after|could not be downloaded).*{len(content) - 5}")
    refused(site, ConnectionError, page, checksum=None)
    del Server.pages[page]
    refused(site, ConnectionError, rf"{page} answered 404 Not Found")
    Server.pages[page] = (content, len(content))
    check(datasets.load("toy", download=True))


def test_a_failed_download_keeps_the_older_files(site):
    datasets.load("toy", download=True)
    (site / "toy" / "toy").unlink()
    del Server.pages["/toy.t.bz2"]
    with pytest.raises(ConnectionError):
        datasets.load("toy", download=True)
    assert [path.name for path in site.iterdir()] == ["toy"]
    assert (site / "toy" / "toy.t.bz2").read_bytes() == TEST


def test_an_interrupted_download_leaves_nothing_behind(site, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets.shutil, "copyfileobj", interrupt)
    refused(site, KeyboardInterrupt, None)


def test_an_unknown_checksum_is_told(site, monkeypatch):
    digests = {"toy": hashlib.sha256(TRAIN).hexdigest(), "toy.t.bz2": hashlib.sha256(TEST).hexdigest()}
    monkeypatch.setattr(datasets, "CHECKSUMS", {})
    refused(site, ValueError, f"no checksum is recorded for toy.*{digests['toy']}.*{digests['toy.t.bz2']}")
    refused(site, ValueError, "no checksum is recorded", checksum={"toy": digests["toy"]})
    refused(site, ValueError, "has the SHA-256", checksum={**digests, "toy.t.bz2": "0" * 64})
    check(datasets.load("toy", download=True, checksum=digests))


def test_any_file_is_taken_on_request_only(site, monkeypatch):
    monkeypatch.setattr(datasets, "CHECKSUMS", {})
    for wrong in ("0" * 64, {"other": "0" * 64}):
        with pytest.raises(ValueError, match="pass a dict .* for toy, toy.t.bz2"):
            datasets.load("toy", download=True, checksum=wrong)
    assert not Server.asked
    check(datasets.load("toy", download=True, checksum=None))
    check(datasets.load("toy"))


def test_no_server(site, monkeypatch):
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/toy"
    monkeypatch.setattr(datasets, "SOURCES", {"toy": (address,)})
    refused(site, ConnectionError, "could not be downloaded .*refused")


@pytest.mark.parametrize("variable", [datasets.FOLDER, datasets.CACHE])
def test_npz_files_of_a_folder(variable, tmp_path, monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    monkeypatch.setenv(datasets.CACHE, str(tmp_path / "none"))
    monkeypatch.setenv(variable, str(tmp_path))
    X = scipy.sparse.random(6, 30, density=0.05, format="csr", random_state=0)
    parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    tests = {f"test_{name}": value for name, value in parts.items()}
    np.savez(tmp_path / "mine.npz", y=np.asarray([0, 1] * 3), y_test=np.asarray([1, 0] * 3), **parts, **tests)
    found = datasets.load("mine")
    np.testing.assert_array_equal(found.X.toarray(), X.toarray())
    np.testing.assert_array_equal(found.X_test.toarray(), X.toarray())
    np.testing.assert_array_equal(found.y, [-1.0, 1.0] * 3)
    np.testing.assert_array_equal(found.y_test, [1.0, -1.0] * 3)
    assert "mine" in datasets.names()
    np.savez(tmp_path / "mine.npz", X=np.ones((3, 2)), y=np.asarray([0.5, 1, 1.5]), description="some words")
    found = datasets.load("mine")
    np.testing.assert_array_equal(found.y, [0.5, 1, 1.5])
    assert found.X_test is None and found.description == "some words"
    good = {"X": np.ones((2, 2)), "y": np.asarray([3, 4])}
    np.savez(tmp_path / "mine.npz", **good, X_test=np.ones((1, 3)), y_test=np.asarray([3]))
    with pytest.raises(ValueError, match=r"X_test has shape \(1, 3\)"):
        datasets.load("mine")
    np.savez(tmp_path / "mine.npz", **good, X_test=np.ones((1, 2)), y_test=np.asarray([5]))
    with pytest.raises(ValueError, match="y_test holds classes that y does not have"):
        datasets.load("mine")


def test_bundled_sets():
    sklearn = pytest.importorskip("sklearn.datasets")
    for name in datasets.BUNDLED:
        found, theirs = datasets.load(name), getattr(sklearn, f"load_{name}")()
        np.testing.assert_array_equal(found.X, theirs.data)
        assert found.X.dtype == np.float64 and len(found.features) == found.X.shape[1]
        assert found.name == name and str(found.X.shape[0]) in found.description
        expected = np.where(theirs.target == 1, 1.0, -1.0) if name == "breast_cancer" else theirs.target
        np.testing.assert_array_equal(found.y, expected)


def test_bundled_sets_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(datasets.sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match="iris comes with scikit-learn: install"):
        datasets.load("iris")


def test_unknown_names(monkeypatch, tmp_path):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    monkeypatch.setenv(datasets.CACHE, str(tmp_path))
    with pytest.raises(ValueError, match="no data set is called 'breast-cancer': did you mean breast_cancer"):
        datasets.load("breast-cancer")
    with pytest.raises(ValueError, match="there are a9a, abalone"):
        datasets.load("qqqqqq")
    assert datasets.names() == sorted({*datasets.BUNDLED, *datasets.SOURCES})


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "hyperjax"),
        ("darwin", "HOME", "Library/Caches/hyperjax"),
        ("win32", "LOCALAPPDATA", "hyperjax"),
    ],
)
def test_the_cache_of_each_platform(platform, variable, expected, tmp_path, monkeypatch):
    monkeypatch.delenv(datasets.CACHE, raising=False)
    monkeypatch.setattr(datasets.sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert datasets.cache_folder() == tmp_path / expected
