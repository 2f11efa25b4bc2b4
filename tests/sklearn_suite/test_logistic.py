from tests.sklearn_suite.borrow import tests_of

globals().update(tests_of("sklearn.linear_model.tests.test_logistic"))
