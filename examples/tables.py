"""
Tables as they are kept
=======================

Tables hold more than numbers: categories, dates, remarks, and cells that nobody filled in. ``TableEncoder`` makes
numbers of them in front of any model; ``AutoClassifier`` does so by itself. Here the owners of cars are asked whether
they would buy the same one again.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.pipeline import make_pipeline

from manyclass import AutoClassifier, GLMClassifier
from manyclass.features import TableEncoder

# %%
# Old cars, some makes and remarks on repairs make it less likely; owners who do not say what they drive per year are
# content. A tenth of the answers follows nothing.

rng = np.random.default_rng(0)
n = 6000
good = ["starts at once", "quiet on the road", "cheap to run", "room for all"]
bad = ["again in repair", "the gear box broke", "rust under the doors", "the seller never answers"]
remarks = np.array([*good, *bad])
makes = np.array(["Alba", "Borea", "Corvo", "Dune", "Elster", "Faro", "Grus", "Hiems"])
frame = pd.DataFrame(
    {
        "make": rng.choice(makes, n),
        "bought": pd.Timestamp("2012-01-01") + pd.to_timedelta(rng.integers(0, 4000, n), unit="D"),
        "km_per_year": np.where(rng.random(n) < 0.15, np.nan, rng.lognormal(9.3, 0.6, n)),
    }
)
said = rng.integers(0, len(remarks), (n, 2))
frame["remark"] = [", ".join(remarks[pair]) for pair in said]
score = (
    np.linspace(-1.5, 1.5, len(makes))[np.searchsorted(makes, frame["make"])]
    + (frame["bought"] - frame["bought"].mean()).dt.days / 1000
    + np.where(frame["km_per_year"].isna(), 2.0, -1.5 * (frame["km_per_year"] > 15_000))
    + 1.5 * (said < len(good)).sum(axis=1)
    - 1.5
)
y = np.where((score > 0) ^ (rng.random(n) < 0.1), "yes", "no")
train, test = slice(0, n // 2), slice(n // 2, None)
print(frame.head())

# %%
# A linear model behind the encoder, whose columns have names.

model = make_pipeline(TableEncoder(), GLMClassifier(alpha=1e-3)).fit(frame[train], y[train])
print(f"{model.score(frame[test], y[test]):.3f} right, of 0.900 that can be")
encoder, coef = model[0], model[-1].coef_[0]
names = encoder.get_feature_names_out()
print(f"{frame.shape[1]} columns of the table became {len(names)}")

# %%
# What weighs most: a category or a word that is there, or one more standard deviation of a number.

most = np.argsort(-abs(coef))[:16][::-1]
figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
axis.barh(names[most], coef[most], color=np.where(coef[most] > 0, "C0", "C3"))
axis.axvline(0.0, color="0.3", linewidth=0.8)
axis.set_xlabel("weight towards yes")
plt.show()

# %%
# ``AutoClassifier`` takes the frame as it is, and tries steps of the numbers and generated features, too.

auto = AutoClassifier(max_time=10, random_state=0).fit(frame[train], y[train])
print(auto.why_[-1])
print(auto.best_estimator_)
print(f"{auto.score(frame[test], y[test]):.3f} right")
