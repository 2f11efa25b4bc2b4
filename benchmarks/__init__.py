"""One command per claim: `python -m benchmarks.<claim>` prints a table, kept in benchmarks/results."""
