"""
Look at the data first
======================

``analyze`` says what is odd about the columns, the rows and the labels, what the spectrum looks like, what each
estimator would cost, and where to begin.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from manyclass import analyze

X, y = load_digits(return_X_y=True)
report = analyze(X, y)
print(report)

# %%
# The spectrum and the sizes of the classes.

report.plot()
plt.show()
