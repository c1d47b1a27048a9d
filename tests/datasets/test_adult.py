import zipfile

import numpy as np
import pandas as pd
import pytest

from ciplearn import CIPClassifier, datasets
from ciplearn._core.errors import CiplearnError, InputError, MissingDataError
from ciplearn.datasets import graphs, load_adult
from ciplearn.datasets.adult import COLUMNS, GRAPH_COLUMNS, read_raw
from tests.datasets.adult_sample import FULL, raw_files, raw_rows, write_files

full_data = pytest.mark.skipif(FULL is None, reason="CIPLEARN_DATA names no folder with the full files")


@pytest.fixture(autouse=True)
def no_data_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.delenv("CIPLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    return write_files(tmp_path / "adult")


def line(**changed):
    fields = dict(zip(COLUMNS, raw_rows(1, seed=3)[0].split(", "), strict=True)) | changed
    return ", ".join(fields[column] for column in COLUMNS)


class TestRawFormat:
    def test_comment_blank_lines_and_full_stops_are_not_data(self):
        frame = read_raw(f"|1x3 Cross validator\n{line(income='>50K.')}\n\n", "adult.test")
        assert list(frame.columns) == list(COLUMNS)
        assert frame["income"].tolist() == [">50K"]

    def test_fields_lose_the_space_before_them_and_question_marks_become_missing(self):
        frame = read_raw(line(workclass="?", race="White", age="41"), "adult.data")
        assert frame["race"].tolist() == ["White"]
        assert frame["workclass"].isna().all()
        assert frame["age"].tolist() == [41]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("39, Private", "2 fields instead of 15 in line 1"),
            ("\n" + line(income="50K"), "income '50K' in line 2"),
            (line(age="old"), "age 'old', which is no whole number"),
            (line(age="?"), "age None, which is no whole number"),
            ("|only a comment\n", "no rows"),
            ("<html><body>Not found</body></html>", "fields instead of 15"),
        ],
    )
    def test_what_is_not_the_format_is_one_sentence_with_its_place(self, text, message):
        with pytest.raises(InputError, match=message):
            read_raw(text, "adult.data")


class TestLoading:
    def test_a_folder_gives_two_tables_of_the_same_kinds(self, folder):
        adult = load_adult(folder)
        assert list(adult.train.columns) == list(GRAPH_COLUMNS)
        assert (adult.train.dtypes == adult.test.dtypes).all()
        assert adult.train["age"].dtype == np.int64
        assert isinstance(adult.train["race"].dtype, pd.CategoricalDtype)
        assert adult.train["income"].cat.categories.tolist() == ["<=50K", ">50K"]
        assert len(adult.train) + len(adult.test) + adult.left_out == 600
        assert not adult.train.isna().any(axis=None)
        assert adult.weights.index.equals(adult.train.index)
        assert adult.weights.between(10_000, 400_000).all()

    def test_rows_with_question_marks_can_be_kept(self, folder):
        adult = load_adult(folder, missing="keep", all_columns=True)
        assert adult.train.shape == (400, 15)
        assert adult.left_out == 0
        expected = sum("?" in row for row in raw_rows(400, seed=0))
        assert expected > 0
        assert adult.train["occupation"].isna().sum() == expected

    def test_columns_are_the_observed_nodes_of_the_graph(self):
        assert set(GRAPH_COLUMNS) == set(graphs.adult_columns().observed)

    def test_an_archive_is_read_as_it_is(self, folder, tmp_path):
        archive = tmp_path / "adult.zip"
        with zipfile.ZipFile(archive, "w") as target:
            for name, content in raw_files().items():
                target.writestr(name, content)
        pd.testing.assert_frame_equal(load_adult(archive).train, load_adult(folder).train)

    @pytest.mark.parametrize("below", ["", "adult"])
    def test_the_variable_names_the_folder_or_the_one_above(self, tmp_path, monkeypatch, below):
        write_files(tmp_path / "mine" / below)
        monkeypatch.setenv("CIPLEARN_DATA", str(tmp_path / "mine"))
        assert load_adult(allow_download=False).source == str(tmp_path / "mine" / below)

    def test_without_data_and_download_the_message_says_what_to_do(self, tmp_path):
        with pytest.raises(MissingDataError, match="pass it as path, or name it in CIPLEARN_DATA") as caught:
            load_adult(allow_download=False)
        assert isinstance(caught.value, CiplearnError)
        assert isinstance(caught.value, FileNotFoundError)
        assert str(tmp_path / "cache" / "ciplearn" / "adult") in str(caught.value)

    @pytest.mark.parametrize("place", ["nowhere", "empty", "text.zip", "other.zip"])
    def test_a_path_without_the_files_is_one_sentence(self, tmp_path, place):
        (tmp_path / "empty").mkdir()
        (tmp_path / "text.zip").write_text("no archive")
        with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
            archive.writestr("readme.txt", "something else")
        with pytest.raises(CiplearnError, match=r"adult\.data and adult\.test"):
            load_adult(tmp_path / place)

    def test_missing_takes_two_words(self, folder):
        with pytest.raises(InputError, match="one of drop, keep, got 'impute'"):
            load_adult(folder, missing="impute")

    def test_a_file_of_incomplete_rows_only_is_refused(self, folder):
        (folder / "adult.test").write_text(line(occupation="?"))
        with pytest.raises(InputError, match=r"adult\.test has no complete rows"):
            load_adult(folder)


class TestRowsThatTrainingHasNotSeen:
    """What people meet with real tables: a new level, one seen once, a question mark, an age out of range, weights."""

    @pytest.fixture
    def fitted(self, folder):
        adult = load_adult(folder, missing="keep")
        X, y = adult.train.drop(columns="income").astype({"native-country": str}), adult.train["income"]
        X.loc[0, "native-country"] = "Holand-Netherlands"
        model = CIPClassifier(
            graph=graphs.adult_columns(), gamma=1.0, epochs=2, missing="impute", hidden=(8,), random_state=0
        )
        return model.fit(X, y, sample_weight=adult.weights), X

    @pytest.mark.parametrize(
        "changed", [{"native-country": "Atlantis"}, {"occupation": None}, {"age": 130}, {"age": 3}], ids=str
    )
    @pytest.mark.filterwarnings("ignore:Column 'native-country' holds levels that training never saw")
    def test_gets_a_probability(self, fitted, changed):
        model, X = fitted
        row = X.iloc[[1]].astype(object).assign(**changed).astype({"age": float, "hours-per-week": float})
        assert np.isfinite(model.predict_proba(row)).all()

    def test_a_new_level_says_nothing_and_a_level_seen_once_says_something(self, fitted):
        model, X = fitted
        row = X.iloc[[1]]
        with pytest.warns(UserWarning, match="'Atlantis' in 1 rows|'Mu' in 1 rows"):
            new, other = (
                model.predict_proba(row.assign(**{"native-country": name}))[0, 1] for name in ("Atlantis", "Mu")
            )
        once = model.predict_proba(row.assign(**{"native-country": "Holand-Netherlands"}))[0, 1]
        assert new == other
        assert once != new

    def test_weights_count_in_the_loss(self, fitted, folder):
        model, X = fitted
        adult = load_adult(folder, missing="keep")
        alike = CIPClassifier(**model.get_params()).fit(X, adult.train["income"])
        assert not np.allclose(alike.predict_proba(X), model.predict_proba(X))


@full_data
class TestFullData:
    def test_complete_rows_and_levels(self):
        adult = load_adult(FULL)
        assert (len(adult.train), len(adult.test)) == (30_162, 15_060)
        assert adult.train["native-country"].cat.categories.size == 41
        assert adult.train["age"].min() == 17
        assert adult.train["age"].max() == 90

    def test_all_rows(self):
        adult = datasets.load_adult(FULL, missing="keep")
        assert (len(adult.train), len(adult.test)) == (32_561, 16_281)
