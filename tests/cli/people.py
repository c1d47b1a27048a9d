"""Made-up people with mixed columns, missing cells and text that needs care, in the manner of the Adult data."""

import numpy as np
import pandas as pd

GRAPH = """dag {
  sex [exposure]
  income [outcome]
  H [latent]
  {race sex} -> {education job income}
  education -> {job hours income}
  {job hours} -> income
  H -> {job hours}
}"""


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], n)
    race = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    education = np.round(10 + 2 * (sex == "Male") + (race == "a") + 2 * rng.normal(size=n), 0)
    talent = rng.normal(size=n)
    job = np.where(talent + 0.3 * (education - 11) + rng.normal(size=n) > 0, "office, big", "shop")
    hours = np.round(38 + 3 * talent + 0.5 * education + rng.normal(size=n), 1)
    score = 0.5 * (education - 11) + (job != "shop") + 0.8 * (sex == "Male") + 0.1 * (hours - 43)
    income = np.where(score + rng.normal(size=n) > 0.8, ">50K", "<=50K")
    table = pd.DataFrame(
        {
            "id": [f"p{place:05d}" for place in range(n)],
            "sex": sex,
            "race": race,
            "education": education,
            "job": job,
            "hours": hours,
            "income": income,
        }
    )
    table.loc[rng.choice(n, n // 30, replace=False), "job"] = "?"
    return table
