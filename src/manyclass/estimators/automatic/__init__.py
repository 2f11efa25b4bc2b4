"""The search of `AutoClassifier`: what it tries, on which rows, who goes on, and the fit of what it has taken."""
