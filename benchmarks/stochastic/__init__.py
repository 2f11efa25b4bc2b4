"""Claims about `PegasosClassifier`, one command each; see docs/theory/stochastic_subgradient.md."""
