"""Made-up rows in the raw format of the Adult files, with its quirks."""

import os
from pathlib import Path

import numpy as np

# The folder of the full files, where CIPLEARN_DATA leads to one.
_named = Path(os.environ.get("CIPLEARN_DATA", "/nowhere"))
FULL = next((place for place in (_named / "adult", _named) if (place / "adult.data").is_file()), None)

LEVELS = {
    "workclass": ["Private", "State-gov", "Self-emp-inc"],
    "education": ["HS-grad", "Bachelors", "Masters"],
    "marital-status": ["Never-married", "Married-civ-spouse", "Divorced"],
    "occupation": ["Sales", "Craft-repair", "Exec-managerial", "Adm-clerical"],
    "relationship": ["Husband", "Wife", "Unmarried"],
    "race": ["White", "Black", "Other"],
    "native-country": ["United-States", "Mexico", "Canada"],
}
YEARS = {"HS-grad": 9, "Bachelors": 13, "Masters": 14}


def raw_rows(n, seed):
    """Lines without the end of the line: older, educated, married men earn more, and "?" is now and then."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        age, sex = int(rng.integers(17, 91)), str(rng.choice(["Male", "Female"]))
        label = {name: str(rng.choice(levels)) for name, levels in LEVELS.items()}
        if age < 30 and rng.random() < 0.7:
            label["marital-status"] = "Never-married"
        hours = int(np.clip(rng.normal(42 if sex == "Male" else 36, 8), 1, 99))
        score = 0.05 * (age - 40) + (sex == "Male") + 0.3 * (YEARS[label["education"]] - 11) + 0.05 * (hours - 40)
        income = ">50K" if score + rng.logistic() > 0.5 else "<=50K"
        if rng.random() < 0.05:
            label["workclass"] = label["occupation"] = "?"
        fields = [
            age,
            label["workclass"],
            int(rng.integers(10_000, 400_000)),
            label["education"],
            YEARS[label["education"]],
            label["marital-status"],
            label["occupation"],
            label["relationship"],
            label["race"],
            sex,
            0,
            0,
            hours,
            label["native-country"],
            income,
        ]
        lines.append(", ".join(map(str, fields)))
    return lines


def raw_files(n_train=400, n_test=200, seed=0):
    """The two files as bytes by name."""
    test = ["|1x3 Cross validator", *(f"{line}." for line in raw_rows(n_test, seed + 1))]
    return {
        "adult.data": "\n".join([*raw_rows(n_train, seed), "", ""]).encode(),
        "adult.test": "\n".join([*test, "", ""]).encode(),
    }


def write_files(folder, **sizes):
    """Write both files into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in raw_files(**sizes).items():
        (folder / name).write_bytes(content)
    return folder
