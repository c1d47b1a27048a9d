"""Tables that are broken, enormous in one direction, or come through a pipe: read rightly, or refused in one line."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from ciplearn.cli.app import run
from ciplearn.sources.table_file import TableFile
from tests.warm import ciplearn, command

GRAPH = "S -> {A L Y}, A -> L -> Y, A -> Y"
FIT = ["--graph", GRAPH, "--outcome=Y", "--protected=A", "--gamma=1", "--epochs=1", "--no-compare"]


@pytest.fixture
def table():
    draw = np.random.default_rng(0)
    S, A, L = draw.normal(size=(3, 60))
    return pd.DataFrame({"S": S, "A": A, "L": L, "Y": S + A + L})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of three numbers, and one of a category."""
    folder = tmp_path_factory.mktemp("model")
    draw = np.random.default_rng(0)
    S, A, L = draw.normal(size=(3, 60))
    table = pd.DataFrame({"S": S, "A": draw.choice(["1", "2"], 60), "L": L, "Y": S + A + L})
    table.to_csv(folder / "t.csv", index=False)
    assert run(["fit", str(folder / "t.csv"), *FIT, "--categories=A", "--out", str(folder / "m")]) == 0
    return folder / "m"


@pytest.fixture
def place(tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.to_csv("t.csv", index=False)
    return tmp_path


def refusal(capsys, code):
    assert code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Traceback" not in said
    return said


def through_pipe(content, path):
    """Feed a named pipe once, from another thread."""
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_bytes(content), daemon=True).start()


def test_pipe_is_read_once_and_whole(place, model):
    large = pd.concat([pd.read_csv(model.parent / "t.csv")] * 30).to_csv(index=False)
    fitted = ciplearn("fit", "-", *FIT, "--categories=A", "--out=m", "--json", input=large)
    assert fitted.returncode == 0, fitted.stderr
    assert json.loads(fitted.stdout)["understood"]["rows"] == 1_800
    (place / "large.csv").write_text(large)
    for name in ("-", "/dev/stdin", "large.csv"):
        done = ciplearn(
            "predict", model, name, "--out", "p.csv", "--chunk-rows=777", "--json", input=large, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rows"] == 1_800
        found = (place / "p.csv").read_bytes()
        assert found == (place / "first.csv").read_bytes() if (place / "first.csv").exists() else True
        (place / "first.csv").write_bytes(found)
    effort = ["--points=20", "--interventions=5", "--draws=2", "--scm-rows=200", "--doubt=0", "--json", "--no-gate"]
    audited = ciplearn("audit", "m", "-", *effort, input=large)
    assert audited.returncode == 0, audited.stderr
    assert "rows of the training table that training never saw" in (place / "report.html").read_text()


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_named_pipe_of_each_notation(name, place, table, model):
    table = table.assign(A="1")
    table.to_csv("plain.csv", index=False)
    table.to_parquet("plain.parquet")
    content = {
        "t.csv": (place / "plain.csv").read_bytes(),
        "t.csv.gz": gzip.compress((place / "plain.csv").read_bytes()),
        "t.parquet": (place / "plain.parquet").read_bytes(),
    }[name]
    (place / "pipes").mkdir()
    through_pipe(content, place / "pipes" / name)
    assert run(["predict", str(model), f"pipes/{name}", "--out=p.csv"]) == 0
    assert run(["predict", str(model), "plain.csv", "--out=q.csv"]) == 0
    np.testing.assert_allclose(pd.read_csv("p.csv"), pd.read_csv("q.csv"), rtol=1e-6)


@pytest.mark.parametrize(("how", "what"), [("to_parquet", "a Parquet file"), ("to_csv", "compressed")])
def test_pipe_that_is_no_text_is_named_for_what_it_is(how, what, place, table):
    settings = {"compression": "gzip"} if how == "to_csv" else {}
    getattr(table, how)("t.bin", **settings)
    done = subprocess.run(
        [command(), "fit", "-", *FIT, "--out=m"], input=Path("t.bin").read_bytes(), capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"ciplearn: /dev/stdin is {what};".encode())


def test_predictions_leave_before_the_pipe_ends(place, model):
    """The first rows are answered while the writer still holds the pipe open."""
    block = ((model.parent / "t.csv").read_text().split("\n", 1)[1]) * 80
    with subprocess.Popen(
        [command(), "predict", str(model), "-", "--chunk-rows=100"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        writing = threading.Thread(target=lambda: running.stdin.write("S,A,L,Y\n" + block))
        writing.start()
        assert running.stdout.readline() == "prediction\n"
        writing.join()
        running.stdin.close()
        rest = running.stdout.read()
    assert rest.count("\n") == 4_800


def test_device_is_no_table(place, capsys):
    for device in ("/dev/zero", "/dev/null", "/dev/urandom"):
        assert "is a device" in refusal(capsys, run(["fit", device, *FIT, "--out=m"]))


def test_broken_archives_are_refused(place, capsys, table):
    (place / "t.csv.tar").write_bytes(b"no archive at all" * 100)
    with tarfile.open("two.csv.tar", "w") as archive:
        archive.add("t.csv")
        archive.add("t.csv", "again.csv")
    for kind, name in ((tarfile.SYMTYPE, "link.csv.tar"), (tarfile.DIRTYPE, "folder.csv.tar")):
        with tarfile.open(name, "w") as archive:
            member = tarfile.TarInfo("t.csv")
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
    for name in ("t.csv.tar", "two.csv.tar", "link.csv.tar", "folder.csv.tar"):
        assert name in refusal(capsys, run(["fit", name, *FIT, "--out=m"]))


def test_zst_without_its_package_says_which_one(place, capsys, monkeypatch):
    (place / "t.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    said = refusal(capsys, run(["fit", "t.csv.zst", *FIT, "--out=m"]))
    assert "need zstandard, which is not installed; pip install zstandard" in said


def test_zst_that_is_cut_short_loses_no_rows_in_silence(place, capsys):
    packed = pytest.importorskip("zstandard").compress((place / "t.csv").read_bytes())
    for content, name in ((packed, "whole"), (packed[:-9], "cut"), (packed[:9] + b"?" + packed[10:], "broken")):
        (place / f"{name}.csv.zst").write_bytes(content)
    assert run(["fit", "whole.csv.zst", *FIT, "--out=m", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["understood"]["rows"] == 60
    for name in ("cut", "broken"):
        said = refusal(capsys, run(["fit", f"{name}.csv.zst", *FIT, "--out=n"]))
        assert f"{name}.csv.zst cannot be read" in said


def test_parquet_of_lists_is_refused_where_it_is_used_only(place, table, model, capsys):
    columns = {name: table[name].tolist() for name in table.columns}
    odd = {
        "a list": [[1.0, 2.0]] * 60,
        "a struct": [{"x": 1}] * 60,
        "a map": pyarrow.array([[("k", 1)]] * 60, pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    }
    pyarrow.parquet.write_table(pyarrow.table({**columns, **odd}), "odd.parquet")
    assert run(["fit", "odd.parquet", *FIT, "--out=m"]) == 0
    for name in odd:
        pyarrow.parquet.write_table(pyarrow.table({**columns, "L": odd[name]}), "used.parquet")
        assert "Column 'L' of used.parquet holds" in refusal(capsys, run(["fit", "used.parquet", *FIT, "--out=n"]))


def test_columns_that_are_not_used_may_share_a_name(place, table, capsys):
    text = table.assign(x=1, y=2).rename(columns={"y": "x"}).to_csv(index=False)
    (place / "twice.csv").write_text(text)
    assert run(["fit", "twice.csv", *FIT, "--out=m"]) == 0
    assert run(["predict", "m", "twice.csv", "--out=p.csv"]) == 0
    (place / "used.csv").write_text(text.replace(",x\n", ",L\n", 1))
    assert "several columns named 'L'" in refusal(capsys, run(["fit", "used.csv", *FIT, "--out=n"]))
    assert "several columns named 'L'" in refusal(capsys, run(["predict", "m", "used.csv", "--out=p.csv"]))
    assert "several columns named 'x'" in refusal(capsys, run(["predict", "m", "twice.csv", "--id=x", "--out=p.csv"]))


def test_many_columns_are_looked_at_once(tmp_path, monkeypatch):
    """The names of 5 000 columns: as many comparisons would be 25 million."""
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{place}" for place in range(5_000)) + "\n" + ",".join(["1"] * 5_000) + "\n")
    compared = 0

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    with TableFile(path).opened() as opened:
        opened.names = [Name(name) for name in opened.names]
        opened.require(["c7", "c4999"])
    assert compared < 25_000


def test_skip_beyond_measure_is_refused(place, capsys):
    assert "--skip" in refusal(capsys, run(["fit", "t.csv", *FIT, "--out=m", "--skip=1000000000"]))
    assert "is empty" in refusal(capsys, run(["fit", "t.csv", *FIT, "--out=m", "--skip=1000"]))


def test_identity_is_copied_as_it_is(place, table, model):
    cells = ["NA", "None", "null", "?", "  007", "7 ", "", "1e3", "01", "a,b"]
    some = table.head(10).assign(who=cells, A="1")
    some.to_csv("t.csv", index=False)
    assert run(["predict", str(model), "t.csv", "--id=who", "--out=p.csv", "--chunk-rows=3"]) == 0
    assert pd.read_csv("p.csv", dtype=str, keep_default_na=False)["who"].tolist() == cells
    some.to_parquet("t.parquet")
    assert run(["predict", str(model), "t.parquet", "--id=who", "--out=p.parquet"]) == 0
    assert pd.read_parquet("p.parquet")["who"].tolist() == cells
    numbered = some.assign(who=pd.array([1, None, *range(2, 10)], dtype="Int64"))
    numbered.to_parquet("n.parquet")
    assert run(["predict", str(model), "n.parquet", "--id=who", "--out=p.csv"]) == 0
    assert pd.read_csv("p.csv", dtype=str, keep_default_na=False)["who"].tolist()[:3] == ["1", "", "2"]


def test_identity_may_be_an_input_too(place, table, model):
    some = table.head(4).assign(A=["1", " 2 ", "", "1.0"])
    some.to_csv("t.csv", index=False)
    some.to_parquet("t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert run(["predict", str(model), name, "--id=A", "--out=p.csv"]) == 0
        found = pd.read_csv("p.csv", dtype=str, keep_default_na=False)
        assert found["A"].tolist() == ["1", " 2 ", "", "1.0"]
    assert run(["predict", str(model), "t.csv", "--id=A", "--out=p.csv"]) == 0
    found = pd.read_csv("p.csv")["prediction"]
    assert found.isna().tolist() == [False, False, True, False]


def test_identity_named_like_a_prediction_is_refused(place, table, model, capsys):
    table.assign(prediction=1, A="1").to_csv("t.csv", index=False)
    for out in ("p.csv", "p.parquet"):
        call = ["predict", str(model), "t.csv", "--id=prediction", "--out", out]
        assert "--id names 'prediction'" in refusal(capsys, run(call))


def test_blanks_before_quotes_are_read_or_refused_but_never_taken_for_text(place, table, model, capsys):
    lines = table.head(12).assign(A='"1"', who="x").to_csv(index=False).replace('"""1"""', ' "1"')
    (place / "quoted.csv").write_text(lines)
    assert run(["predict", str(model), "quoted.csv", "--out=p.csv"]) == 0
    assert capsys.readouterr().err == ""
    said = refusal(capsys, run(["predict", str(model), "quoted.csv", "--id=who", "--out=p.csv"]))
    assert "blanks before a quotation mark" in said


def test_first_chunk_without_a_prediction_in_parquet(place, table, model):
    table.assign(A="1", L=[None] * 30 + [0.5] * 30).to_csv("t.csv", index=False)
    assert run(["predict", str(model), "t.csv", "--out=p.parquet", "--chunk-rows=10"]) == 0
    answers = pd.read_parquet("p.parquet")["prediction"]
    assert answers.isna().tolist() == [True] * 30 + [False] * 30
    assert answers.dtype == float


def test_compressed_output_is_compressed_and_the_same_each_time(place, table, model, capsys):
    table.assign(A="1").to_csv("t.csv", index=False)
    assert run(["predict", str(model), "t.csv", "--out=p.csv"]) == 0
    for name in ("p.csv.gz", "q.csv.gz"):
        assert run(["predict", str(model), "t.csv", "--out", name]) == 0
        assert gzip.decompress((place / name).read_bytes()) == (place / "p.csv").read_bytes()
    assert (place / "p.csv.gz").read_bytes() == (place / "q.csv.gz").read_bytes()
    assert "must end in .csv, .csv.gz" in refusal(capsys, run(["predict", str(model), "t.csv", "--out=p.csv.zip"]))
    assert not (place / "p.csv.zip").exists()


def test_labels_that_training_never_saw_are_counted_and_named(place, table, model, capsys):
    table.head(4).assign(A=["1.0", " 2 ", "9", "9"]).to_csv("t.csv", index=False)
    assert run(["predict", str(model), "t.csv", "--out=p.csv", "--json", "--chunk-rows=3"]) == 0
    printed = capsys.readouterr()
    assert "'9' in A (2)" in printed.err
    assert json.loads(printed.out)["unseen_labels"] == [{"column": "A", "label": "9", "rows": 2}]
    table.head(4).assign(A=["1", "2", "1", "2"]).to_csv("exact.csv", index=False)
    table.head(4).assign(A=["1.0", " 2 ", "01", "2.0"]).to_csv("alike.csv", index=False)
    answers = []
    for name in ("exact.csv", "alike.csv"):
        assert run(["predict", str(model), name, "--out=p.csv"]) == 0
        answers.append((place / "p.csv").read_text())
    assert answers[0] == answers[1]


def test_none_is_missing_unless_told_otherwise(place, table, capsys):
    table.assign(A=["None", "some"] * 30).to_csv("t.csv", index=False)
    call = ["fit", "t.csv", *FIT, "--out=m", "--json"]
    assert "has the same value in all" in refusal(capsys, run(call))
    assert run([*call, "--only-na"]) == 0
    columns = json.loads(capsys.readouterr().out)["understood"]["columns"]
    assert next(column["values"] for column in columns if column["name"] == "A") == "None, some"
    assert run(["predict", "m", "t.csv", "--out=p.csv"]) == 0
    assert pd.read_csv("p.csv")["prediction"].notna().all(), "the training table is read as in training"
    pd.read_csv("t.csv", keep_default_na=False).head(6).to_csv("others.csv", index=False, sep=";")
    assert run(["predict", "m", "others.csv", "--separator=;", "--out=p.csv"]) == 0
    assert pd.read_csv("p.csv")["prediction"].notna().all(), "and so are the cells of another one"
    assert run(["predict", "m", "others.csv", "--separator=;", "--na=None", "--out=p.csv"]) == 0
    assert pd.read_csv("p.csv")["prediction"].isna().tolist() == [True, False] * 3


@pytest.mark.parametrize(("low", "high"), [("0", "10000000000000000000"), ("0", "1e300"), ("-1e19", "7")])
def test_outcomes_beyond_whole_numbers_of_the_machine_come_back(low, high, place, table, capsys):
    table.assign(Y=[low, high] * 30).to_csv("t.csv", index=False)
    assert run(["fit", "t.csv", *FIT, "--out=m"]) == 0
    assert run(["predict", "m", "t.csv", "--out=p.csv"]) == 0
    assert set(pd.read_csv("p.csv")["prediction"].astype(float)) <= {float(low), float(high)}


def test_infinity_is_refused_with_its_row(place, table, capsys):
    for name in ("Y", "L"):
        table.astype({name: object}).replace({name: {table[name][3]: "inf"}}).to_csv("t.csv", index=False)
        said = refusal(capsys, run(["fit", "t.csv", *FIT, "--out=m"]))
        assert f"Column '{name}' holds infinity, 'inf' in row 4" in said


def test_table_that_changes_while_it_is_read_is_refused(place, monkeypatch, capsys):
    digest = TableFile.digest

    def slow(self):
        found = digest(self)
        with self.path.open("a") as stream:
            stream.write("1,2,3,4\n")
        return found

    monkeypatch.setattr(TableFile, "digest", slow)
    assert "was changed while it was read" in refusal(capsys, run(["fit", "t.csv", *FIT, "--out=m"]))
    assert not (place / "m").exists()


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_text("other rows")], ids=["gone", "changed"])
def test_table_is_known_by_what_it_was_when_it_was_read(change, place, monkeypatch):
    import ciplearn.cli.fit as fitting

    train, before = fitting.train, hashlib.sha256((place / "t.csv").read_bytes()).hexdigest()

    def meanwhile(*arguments):
        change(place / "t.csv")
        return train(*arguments)

    monkeypatch.setattr(fitting, "train", meanwhile)
    assert run(["fit", "t.csv", *FIT, "--out=m"]) == 0
    assert json.loads((place / "m" / "training.json").read_text())["table"]["sha256"] == before


def test_files_that_change_before_training_reads_them_again_are_refused(place, table, monkeypatch, capsys):
    import ciplearn.cli.fit as fitting

    (place / "rows").mkdir()
    for part in range(2):
        table.to_csv(place / "rows" / f"{part}.csv", index=False)
    draw = fitting.sampled_table

    def meanwhile(*arguments):
        rows = draw(*arguments)
        table.head(30).to_csv(place / "rows" / "1.csv", index=False)
        return rows

    monkeypatch.setattr(fitting, "sampled_table", meanwhile)
    said = refusal(capsys, run(["fit", "rows/*.csv", *FIT, "--out=m"]))
    assert "was changed since rows were drawn" in said
    assert not (place / "m").exists()


def test_blanks_around_cells_do_not_count(place, table, capsys):
    some = table.round(3).astype(str)
    some.to_csv("t.csv", index=False)
    some.map(lambda cell: f" {cell}  ").assign(L=[" NA ", *some["L"][1:]]).to_csv("blanks.csv", index=False)
    described = []
    for name in ("t.csv", "blanks.csv"):
        assert run(["fit", name, *FIT, "--out=m", "--dry-run", "--json"]) == 0
        described.append(json.loads(capsys.readouterr().out))
    assert [one["dropped"] for one in described] == [0, 1]
    assert [one["kind"] for one in described[1]["columns"]] == ["number"] * 4
