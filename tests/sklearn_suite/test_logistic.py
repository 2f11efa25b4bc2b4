from tests.sklearn_suite import borrow

globals().update(borrow.tests_of("sklearn.linear_model.tests.test_logistic"))
