"""The tests of scikit-learn that are not run, and why: the first pattern that a test's name begins with counts."""

import re

ANOTHER_SOLVER = (
    "the same test runs with the first solver: `solver` is accepted and ignored, so that the others would repeat it"
)
LIBLINEAR = "about LIBLINEAR itself: it penalises the intercept, draws rows at random, and knows two classes"
L1 = "there is no L1 penalty, which is refused with a sentence"
PRIVATE = "about a private function of scikit-learn's, compared with a solver that is not ours"
DEPRECATION = "about scikit-learn's own deprecations: what is deprecated there is accepted here without a warning"
STEPS = "about the single steps of scikit-learn's solvers, not about where they end"
DISPATCH = "about array_api_dispatch and its devices; arrays of other namespaces are taken here without it (tests/data)"
LBFGS_CALLBACKS = "counts the calls of lbfgs, one of them empty; every solver has callbacks here (test_linear_model.py)"
NEEDS_ANOTHER = "about estimators that are not ours"

SKIPPED = [
    # -- LogisticRegression and LogisticRegressionCV
    (r"test_check_solver_option", "which solver can do what: all of them are the same here"),
    (r"test_elasticnet_l1_ratio_err_helpful", L1),
    (r"test_logreg_l1|test_elastic_net|test_LogisticRegression_elastic_net|test_LogisticRegressionCV_.*elastic", L1),
    (r"test_LogisticRegressionCV_no_refit\[.*l1_ratios1|test_logistic_regression_cv_refit\[1", L1),
    (r"test_scores_attribute_layout_elasticnet|test_lr_penalty_l1ratio_incompatible|test_saga_vs_liblinear", L1),
    (r"test_consistency_path|test_logistic_regression_path|test_logistic_cv_multinomial_score\[neg_log_loss", PRIVATE),
    (r"test_logreg_predict_proba_multinomial|test_get_default_scorer", PRIVATE),
    (r".*liblinear", LIBLINEAR),
    (r"test_logistic_cv\[", LIBLINEAR),
    (r"test_logreg_intercept_scaling", LIBLINEAR),
    (r"test_l1_ratio_non_elasticnet|test_l1_ratio_None|test_penalty_(none|deprecated)|.*warns", DEPRECATION),
    (r"test_max_iter|test_warm_start_newton_solver|test_newton_cholesky_fallback|test_single_feature_newton_cg", STEPS),
    (r"test_large_sparse_matrix\[.*(sag|saga|liblinear)", "64-bit indices are taken by every solver here"),
    (
        r"test_logistic_cv_mock_scorer",
        "all folds go down the path together: the scorer is called in another order",
    ),
    (r"test_n_iter", "compares the numbers of iterations of two solvers, and of L1 ratios"),
    (r"test_logistic_regression_callback", LBFGS_CALLBACKS),
    (r".*array_api", DISPATCH),
    (r".*\[.*(newton-cg|newton-cholesky|sag|saga)", ANOTHER_SOLVER),
    (r"test_ridgecv_alphas_zero\[RidgeClassifierCV-3", "alpha=0 is no end of a path here; RidgeClassifier has it"),
    # -- RidgeClassifier and RidgeClassifierCV
    (r".*(RidgeCV|\[Ridge\b)", NEEDS_ANOTHER),
]


def reason(name):
    """Why a test is not run; None where it is."""
    return next((why for pattern, why in SKIPPED if re.match(pattern, name)), None)
