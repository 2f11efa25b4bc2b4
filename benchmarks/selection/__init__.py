"""What choosing costs and gives: a penalty by cross-validation, a model by `AutoClassifier`."""
