"""scikit-learn's own tests of its linear classifiers, run against those of `manyclass.linear_model`.

``python -m tests.sklearn_suite`` prints how many passed, and which were skipped and why.
"""
