"""Tables from CSV, npz and svmlight files, and the one-line errors of files that are none."""

import gzip

import numpy as np
import pytest
import scipy.sparse

from hyperjax import svmlight
from hyperjax.tables import Table, columns, read_table

pytestmark = pytest.mark.no_extras

NAMED = "age,dose,kind\n31,0.5,cat\n-4,1e3,dog\n0, 7,cat\n"


def saved(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_names_numbers_and_classes_in_words(mark, ending, tmp_path):
    content = "\ufeff" + NAMED.replace(",", mark).replace("\n", ending)
    table = read_table(saved(tmp_path, content))
    np.testing.assert_array_equal(table.X, [[31, 0.5], [-4, 1e3], [0, 7]])
    assert table.y.tolist() == ["cat", "dog", "cat"]
    assert (table.features, table.target) == (("age", "dose"), "kind")
    assert table.X.dtype == np.float64


@pytest.mark.parametrize("target", ["dose", 1, -2, "1"])
def test_the_target_by_name_and_number(target, tmp_path):
    content = "age,dose,size\n31,0.5,8\n-4,1e3,9\n"
    table = read_table(saved(tmp_path, content), target=target)
    np.testing.assert_array_equal(table.X, [[31, 8], [-4, 9]])
    np.testing.assert_array_equal(table.y, [0.5, 1e3])
    assert (table.features, table.target) == (("age", "size"), "dose")


def test_no_header(tmp_path):
    path = saved(tmp_path, "1,2,yes\n\n3,4,no\n", "data.txt")
    table = read_table(path)
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    assert table.y.tolist() == ["yes", "no"] and table.features is None
    np.testing.assert_array_equal(read_table(path, target=2).X, table.X)
    with pytest.raises(ValueError, match="target='kind' is no column .* no header"):
        read_table(path, target="kind")
    with pytest.raises(ValueError, match="target=3 is no column"):
        read_table(path, target=3)
    numbers = saved(tmp_path, "1,2\n3,4\n")
    assert read_table(numbers).X.shape == (2, 1)
    assert read_table(numbers, header=True).X.shape == (1, 1)


def test_quotes_hold_separators(tmp_path):
    table = read_table(saved(tmp_path, '"a, b";"c"\n"1";"x;y"\n2;"z"\n'))
    np.testing.assert_array_equal(table.X, [[1], [2]])
    assert table.features == ("a, b",) and table.y.tolist() == ["x;y", "z"]


def test_a_model_reads_its_own_columns(tmp_path):
    path = saved(tmp_path, "note,dose,age,kind\nwords,0.5,31,?\n,1e3,-4,\n")
    table = read_table(path, target="response", features=["age", "dose"])
    np.testing.assert_array_equal(table.X, [[31, 0.5], [-4, 1e3]])
    assert table.y is None and table.features == ("age", "dose")
    with pytest.raises(ValueError, match="lacks the column 'weight'; it has the columns 'note', 'dose'"):
        read_table(path, features=["age", "weight"])
    bare = saved(tmp_path, "1,2\n3,4\n", "bare.csv")
    for target in (None, 0, "y"):
        assert read_table(bare, target=target, features=["a", "b"]).y is None
    np.testing.assert_array_equal(read_table(bare, features=["a"]).y, [2, 4])
    with pytest.raises(ValueError, match="has 2 columns of features, and 3 are expected"):
        read_table(bare, features=["a", "b", "c"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,y\n1,2,3\n1,,3\n", r"line 3: column 'b' has a missing value \(''\)"),
        ("a,b,y\n1,2,3\n\n1,NA,3\n", r"line 4: column 'b' has a missing value \('NA'\)"),
        ("1,2,3\n1,?,3\n", r"line 2: column 2 has a missing value"),
        ("a,b,y\n1,2,3\n1,nan,3\n", r"line 3: column 'b' has a missing value"),
        ("a,b,y\n1,2,3\n1,inf,3\n", r"line 3: column 'b' holds 'inf'"),
        ("a,b,y\n1,2,3\n1,red,3\n", r"line 3: column 'b' holds 'red', which is not a number"),
        ("a,b,y\n1,2,3\n1,2_0,3\n", r"line 3: column 'b' holds '2_0', which is not a number"),
        ("a,b,y\n1,2,3\n1,2\n", "line 3: found 2 cells where the first line has 3"),
        ("a,b,y\n1,2,3\n1,2,\n", "line 3: the target, column 'y', has a missing value"),
        ("a,b,y\n1,2,3\n1,2,inf\n", "line 3: the target, column 'y', is 'inf'"),
        ("a,a,y\n1,2,3\n", "line 1: the name 'a' appears twice"),
        (",a,y\n1,2,3\n", "line 1: column 1 of 3 has no name.*index=False"),
        ("a,b,y\n", "holds no rows of numbers below its header"),
        ("", "holds no rows"),
        ("1\n2\n", "has one column only"),
        (b"a,b\n1,\xff\n", "is no text in UTF-8"),
    ],
)
def test_a_broken_table_is_named(content, message, tmp_path):
    with pytest.raises(ValueError, match=rf"data\.csv.*{message}"):
        read_table(saved(tmp_path, content))


def test_an_overflowing_sum_is_no_infinite_cell(tmp_path):
    table = read_table(saved(tmp_path, "1e308,1e308,1\n1,2,3\n"))
    np.testing.assert_array_equal(table.X, [[1e308, 1e308], [1, 2]])


@pytest.mark.parametrize("name", "a.svm a.libsvm a.svmlight a.txt a.dat a a.t a.svm.gz a.t.gz".split())
def test_svmlight_by_ending_and_by_look(name, tmp_path):
    X, y = scipy.sparse.csr_matrix([[0, 0.0], [1.5, 0], [0, 2]]), np.asarray([1.0, -1, 1])
    path = tmp_path / name
    svmlight.write(path, X, y)
    table = read_table(path)
    np.testing.assert_array_equal(table.X.toarray(), X.toarray())
    np.testing.assert_array_equal(table.y, y)
    assert table.features is None
    assert read_table(path, features=["a", "b", "c"]).X.shape == (3, 3)
    with pytest.raises(ValueError, match="2 columns without names, and 1 are expected"):
        read_table(path, features=["a"])
    with pytest.raises(ValueError, match="leave target out"):
        read_table(path, target="y")


def test_packed_csv(tmp_path):
    table = read_table(saved(tmp_path, gzip.compress(NAMED.encode()), "data.csv.gz"))
    assert table.X.shape == (3, 2)


def test_npz(tmp_path):
    path = tmp_path / "a.npz"
    X = np.asarray([[1, 2, 3], [4, 5, 6]], np.int32)
    np.savez(path, X=X, y=np.asarray(["u", "v"]), feature_names=np.asarray(["a", "b", "c"]))
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    assert table.X.dtype == np.float64 and table.y.tolist() == ["u", "v"] and table.features == ("a", "b", "c")
    np.testing.assert_array_equal(read_table(path, features=["c", "a"]).X, X[:, [2, 0]])
    sparse = scipy.sparse.csr_matrix(X)
    parts = {name: getattr(sparse, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(path, y=[1, 2], **parts)
    table = read_table(path)
    assert scipy.sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), X)


def test_bad_npz(tmp_path):
    path = tmp_path / "a.npz"
    good = {"X": np.ones((2, 3)), "y": np.ones(2)}
    for changes, message in [
        ({"y": np.ones(3)}, r"y has shape \(3,\) and X 2 rows"),
        ({"X": np.full((2, 3), np.nan)}, "X holds NaN or infinite values, the first in row 0"),
        ({"X": np.ones(3)}, r"X has shape \(3,\)"),
        ({"X": np.asarray([["a"], ["b"]])}, "type <U1"),
        ({"y": np.asarray([1, np.inf])}, "y holds NaN"),
        ({"feature_names": np.asarray(["a"])}, "names 1 features, and X has 3 columns"),
        ({"y": np.asarray([object(), 1])}, "is damaged or no npz"),
        ({"indptr": np.arange(2)}, "is damaged or no npz"),
    ]:
        np.savez(path, **{**good, **changes})
        with pytest.raises(ValueError, match=message):
            read_table(path)
    np.savez(path, y=np.ones(2))
    with pytest.raises(ValueError, match="holds y: expected the arrays X and y"):
        read_table(path)
    for content in (b"", b"words", path.read_bytes()[:50]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.npz is damaged"):
            read_table(path)


@pytest.mark.parametrize("name", ["absent.csv", "absent.npz", "absent.svm", "absent"])
def test_no_such_file(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"{name} does not exist"):
        read_table(tmp_path / name)
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)


def test_columns_by_name():
    table = Table(np.arange(6.0).reshape(2, 3), None, ("a", "b", "c"))
    np.testing.assert_array_equal(columns(table, ["c", "a"]), [[2, 0], [5, 3]])
    with pytest.raises(ValueError, match="lacks the columns 'd', 'e'; it has the columns 'a', 'b', 'c'"):
        columns(table, ["a", "d", "e"])
    with pytest.raises(ValueError, match="3 columns without names, and 4 are expected"):
        columns(Table(table.X, None), list("abcd"))
