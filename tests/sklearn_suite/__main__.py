"""How many of scikit-learn's tests pass, and which are left out and why."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.sklearn_suite.skipped import reason


class Tally:
    def __init__(self):
        self.outcomes, self.reasons = Counter(), Counter()

    def pytest_deselected(self, items):
        self.reasons.update(reason(item.name) for item in items)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.outcomes["expected to fail" if hasattr(report, "wasxfail") else report.outcome] += 1
        if report.skipped and not hasattr(report, "wasxfail"):
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1


def main():
    tally = Tally()
    failed = pytest.main(["-q", "--tb=short", "--disable-warnings", str(Path(__file__).parent)], plugins=[tally])
    print("\n" + ", ".join(f"{number} {outcome}" for outcome, number in tally.outcomes.most_common()))
    for why, number in tally.reasons.most_common():
        print(f"{number:5d}  {why}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
