"""The svmlight format: scikit-learn's reader agrees, both of our ways to read agree, every bad line is named."""

import bz2
import gzip
import io

import numpy as np
import pytest
import scipy.sparse

from hyperjax import svmlight

SAMPLE = b"""# a comment on its own line

+1 qid:3 1:0.5 3:-2e-3 # the rest of a line
-1 2:1 7:.25\t9:1e5\r
0.5
1   1:+3.   2:4
"""


def saved(tmp_path, content, name="data.svm"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def test_a_sample_by_hand(tmp_path):
    X, y = svmlight.read(saved(tmp_path, SAMPLE))
    expected = np.zeros((4, 9))
    expected[0, [0, 2]] = 0.5, -2e-3
    expected[1, [1, 6, 8]] = 1.0, 0.25, 1e5
    expected[3, [0, 1]] = 3.0, 4.0
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, [1.0, -1.0, 0.5, 1.0])
    assert scipy.sparse.isspmatrix_csr(X) and X.dtype == np.float64


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gz", "bz2"])
def test_packed_files(pack, tmp_path):
    name = "data.svm.gz" if pack is gzip.compress else "data.svm.bz2"
    X, y = svmlight.read(saved(tmp_path, pack(SAMPLE), name))
    plain, labels = svmlight.read(saved(tmp_path, SAMPLE))
    np.testing.assert_array_equal(X.toarray(), plain.toarray())
    np.testing.assert_array_equal(y, labels)
    with pytest.raises(ValueError, match=rf"{name} is damaged"):
        svmlight.read(saved(tmp_path, pack(SAMPLE)[:-12], name))
    with pytest.raises(ValueError, match=rf"{name} is damaged"):
        svmlight.read(saved(tmp_path, SAMPLE, name))


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz", "data.txt.bz2"])
def test_scikit_learn_reads_the_same(zero_based, name, tmp_path, rng, monkeypatch):
    datasets = pytest.importorskip("sklearn.datasets")
    monkeypatch.setattr(svmlight, "BLOCK", 700)  # several blocks a file
    X = scipy.sparse.random(60, 40, density=0.2, format="csr", random_state=1)
    X.data = rng.normal(size=X.nnz) * 10.0 ** rng.integers(-300, 300, X.nnz)
    X.data[:5] = 3.0, -2.0, 1e16, -1e-308, 123456789012345.0
    y = rng.normal(size=60)
    path = tmp_path / name
    svmlight.write(path, X, y, zero_based)
    theirs, labels = datasets.load_svmlight_file(str(path), n_features=40, zero_based=zero_based)
    ours, own = svmlight.read(path, n_features=40, zero_based=zero_based)
    for found in (theirs, ours):
        np.testing.assert_array_equal(found.toarray(), X.toarray())
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(own, y)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_dense_rows_lose_nothing_but_zeros(tmp_path):
    X = np.asarray([[0.0, 0.1, -3.0], [1.0, 0.0, 0.0]], np.float32)
    svmlight.write(tmp_path / "a", X, [1, -1])
    assert (tmp_path / "a").read_text().splitlines()[1] == "-1 1:1"
    found, _ = svmlight.read(tmp_path / "a")
    np.testing.assert_array_equal(found.toarray(), X.astype(np.float64))


def test_index_zero_moves_the_first_column(tmp_path):
    path = saved(tmp_path, b"1 0:5 2:6\n-1 1:7\n")
    np.testing.assert_array_equal(svmlight.read(path)[0].toarray(), [[5, 0, 6], [0, 7, 0]])
    later = saved(tmp_path, b"1 1:5 2:6\n", "later")
    np.testing.assert_array_equal(svmlight.read(later)[0].toarray(), [[5, 6]])
    np.testing.assert_array_equal(svmlight.read(later, zero_based=True)[0].toarray(), [[0, 5, 6]])
    assert svmlight.read(later, n_features=7)[0].shape == (1, 7)
    with pytest.raises(ValueError, match="line 1: index 0 .*zero_based=True"):
        svmlight.read(path, zero_based=False)
    with pytest.raises(ValueError, match="zero_based='yes'"):
        svmlight.read(path, zero_based="yes")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2:3 x", "found 'x' where index:value"),
        ("1 2:3 4", "found '4' where index:value"),
        ("1 3:1 2:5", "index 2 after index 3"),
        ("1 3:1 3:5", "index 3 twice"),
        ("1 3:nan", "found 'nan' for the value of index 3"),
        ("1 3:1e999", "found '1e999' for the value of index 3"),
        ("nan 3:1", "found 'nan' for the label"),
        ("yes 3:1", "found 'yes' for the label"),
        ("1,2 3:1", "found '1,2' for the label"),
        ("3:1 4:5", "found '3:1' for the label"),
        ("1 -3:1", "found the index '-3'"),
        ("1 1.0:1", "found the index '1.0'"),
        ("1 :1 2:", "found the index ''"),
        ("1 2:", "found '' for the value of index 2"),
        ("1 2: 3", "found '' for the value of index 2"),
        ("1 2:3:4", "found '3:4' for the value of index 2"),
        ("1 2:3-4 5:", "found '3-4' for the value of index 2"),
        ("1 2:1_0", "found '1_0' for the value of index 2"),
        ("1 99999999999:1", "found the index '99999999999'"),
        ("1 2:\0", "found '.*' for the value of index 2"),
        ("1 2:é", "found 'é' for the value of index 2"),
    ],
)
def test_a_broken_line_is_named(line, message, tmp_path):
    path = saved(tmp_path, f"1 1:1 4:2\n# nothing\n\n{line}\n-1 2:3\n".encode())
    with pytest.raises(ValueError, match=rf"data\.svm, line 4: {message}"):
        svmlight.read(path)


def test_lines_are_counted_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "BLOCK", 64)
    good = b"1 1:1 4:2 # comment\n\n" * 20
    with pytest.raises(ValueError, match="line 41: found 'oops'"):
        svmlight.read(saved(tmp_path, good + b"1 oops"))
    with pytest.raises(ValueError, match="line 41: index 12 is beyond the 5 features"):
        svmlight.read(saved(tmp_path, good + b"1 12:3\n1 13:3"), n_features=5)


def test_other_bad_files(tmp_path):
    for content in (b"", b"\n  \n", b"# only words\n"):
        with pytest.raises(ValueError, match="holds no rows"):
            svmlight.read(saved(tmp_path, content))
    with pytest.raises(FileNotFoundError, match="absent does not exist"):
        svmlight.read(tmp_path / "absent")
    with pytest.raises(ValueError, match="is a folder"):
        svmlight.read(tmp_path)
    with pytest.raises(ValueError, match=r"y has shape \(3,\) and X has 2 rows"):
        svmlight.write(tmp_path / "out", np.ones((2, 2)), np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        svmlight.write(tmp_path / "out", np.full((2, 2), np.nan), np.ones(2))
    assert not (tmp_path / "out").exists()


def test_the_fast_way_accepts_no_line_the_careful_one_refuses(rng):
    """Blocks of random words: where the fast reader answers, the careful one gives the same rows."""
    words = "1 -1 2:3 4:5e1 4:1 7:-.5 qid:2 1:0 : 3: :3 1:2:3 1-2 # x 3:1.2.3".split()
    answered = refused = 0
    for _ in range(4000):
        lines = [" ".join(rng.choice(words[: rng.integers(4, 17)], rng.integers(0, 5))) for _ in range(2)]
        block = "\n".join(lines).encode()
        fast = svmlight._fast(block, 1)
        if fast is None:
            refused += 1
            continue
        answered += 1
        careful = svmlight._careful(block, "x", 1)
        for name in ("y", "counts", "indices", "values", "lines"):
            np.testing.assert_array_equal(getattr(fast, name), getattr(careful, name), err_msg=repr(block))
    assert answered > 300 and refused > 300


def test_sound_files_take_the_fast_way(rng):
    """The speed of large files hangs on it."""
    X = scipy.sparse.random(500, 300, density=0.1, format="csr", random_state=2)
    file = io.BytesIO()
    svmlight.write_rows(file, rng.normal(size=500), X, 1)
    assert svmlight._fast(file.getvalue(), 1) is not None
    assert svmlight._fast(SAMPLE, 1) is not None
