"""All benchmarks of ``benchmarks.stochastic``: ``python -m benchmarks.stochastic``."""

from benchmarks.suite import run_all

run_all(
    "benchmarks.stochastic",
    [
        "time_to_error --data 20news-unit",
        "time_to_error --data 20news-log",
        "time_to_error --data rcv1-like-4",
        "time_to_error --data rcv1-like-53",
        "inverse_dependency --data rcv1-like-4",
        "inverse_dependency --data rcv1-like-53 --seeds 5",
        "inverse_dependency --data kddcup",
        "inverse_dependency --data mnist",
        "joint_versus_ovr",
        "lambda_of_rows",
        "batch_svm",
        "cost_per_step",
        "first_steps",
        "optima",
    ],
)
