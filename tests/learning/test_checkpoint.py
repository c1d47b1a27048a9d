"""Training that is killed and started again ends with the same weights."""

import subprocess
import textwrap
import time

import numpy as np
import pytest
import torch

from ciplearn import CIPRegressor
from ciplearn._core.errors import InputError
from ciplearn.learning import loop as checkpoint_module
from tests import warm

GENERATOR = np.random.default_rng(0)
X = GENERATOR.random((200, 3))
Y = X.sum(axis=1) + 0.1 * GENERATOR.random(200)


class KilledError(Exception):
    pass


def model(path=None, **settings):
    return CIPRegressor(protected=[0], gamma=1.0, epochs=12, batch_size=50, random_state=0, checkpoint=path, **settings)


@pytest.mark.parametrize(
    ("settings", "file"),
    [
        ({}, "work.ckpt"),
        ({"early_stopping": True, "patience": 50}, "work.ckpt"),
        # Few rows stop three networks, each with a file of its own.
        ({"early_stopping": True, "patience": 50}, "work.ckpt.1"),
    ],
    ids=["plain", "early stopping", "second network"],
)
def test_resumed_training_ends_with_the_same_weights(tmp_path, monkeypatch, settings, file):
    monkeypatch.setattr(checkpoint_module, "_SECONDS_BETWEEN", 0.0)
    path = tmp_path / "work.ckpt"
    whole = model(**settings).fit(X, Y)
    save = checkpoint_module.Checkpoint.save

    def killed_after_five(self, state):
        save(self, state)
        if state["epoch"] == 5 and (tmp_path / file).exists():
            raise KilledError

    monkeypatch.setattr(checkpoint_module.Checkpoint, "save", killed_after_five)
    with pytest.raises(KilledError):
        model(path, **settings).fit(X, Y)
    assert [one.name for one in tmp_path.iterdir()] == [file]
    monkeypatch.setattr(checkpoint_module.Checkpoint, "save", save)
    resumed = model(path, **settings).fit(X, Y)
    assert resumed.history_ == whole.history_
    for one, other in zip(resumed.module_.parameters(), whole.module_.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not list(tmp_path.iterdir())


def test_text_a_folder_and_a_flipped_bit_are_no_checkpoint(tmp_path):
    path = tmp_path / "work.ckpt"
    checkpoint = checkpoint_module.Checkpoint(path, "mine")
    checkpoint._written = -checkpoint_module._SECONDS_BETWEEN
    checkpoint.save({"weights": torch.arange(50.0)})
    assert checkpoint.load()["weights"].tolist() == list(range(50))
    whole = path.read_bytes()
    for place in range(0, len(whole), 23):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError, match="damaged or no checkpoint"):
            checkpoint.load()
    for content in (b"", b"just some text\n" * 40, whole[:-1], whole[64:]):
        path.write_bytes(content)
        with pytest.raises(InputError, match="damaged or no checkpoint"):
            checkpoint.load()
    with pytest.raises(InputError, match="damaged or no checkpoint"):
        checkpoint_module.Checkpoint(tmp_path, "mine").load()


def test_process_killed_without_warning_resumes(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np, torch
            from ciplearn import CIPRegressor
            from ciplearn.learning import loop
            torch.set_num_threads(1)
            loop._SECONDS_BETWEEN = 0.0
            X = np.random.default_rng(0).random((400, 3))
            model = CIPRegressor(protected=[0], gamma=1.0, epochs=80, random_state=0, checkpoint=sys.argv[1] or None)
            print(repr(float(model.fit(X, X.sum(axis=1)).predict(X).sum())))
            """
        )
    )
    path = tmp_path / "work.ckpt"
    process = subprocess.Popen([warm.python(), str(script), str(path)], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert path.exists()
    answers = [
        subprocess.run([warm.python(), str(script), place], capture_output=True, text=True, check=True).stdout
        for place in (str(path), "")
    ]
    assert answers[0] == answers[1]


def test_checkpoint_of_another_training_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint_module.Checkpoint, "remove", lambda self: None)
    path = tmp_path / "work.ckpt"
    model(path).fit(X, Y)
    with pytest.raises(InputError, match="other rows or with other settings"):
        model(path).set_params(gamma=2.0).fit(X, Y)
    with pytest.raises(InputError, match="other rows or with other settings"):
        model(path).fit(X[::-1].copy(), Y)


def test_damaged_checkpoint_is_named(tmp_path):
    path = tmp_path / "work.ckpt"
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="cannot be read"):
        model(path).fit(X, Y)
