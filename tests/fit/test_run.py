"""The one loop, with toy solvers."""

import math
import time

import pytest

from manyclass.fit import Checkpoint, Clock, Iterate, OutOfTime, Record, Run, Status


def toy(values, *, end=None, seen=None, **fields):
    """Iterates whose models are their numbers, and whose objectives or other fields are given."""

    def generate():
        for number, value in enumerate(values, 1):
            if isinstance(value, BaseException):
                raise value
            if seen is not None:
                seen.append(number)
            given = {"objective": value} | {name: of(value) for name, of in fields.items()}
            yield Iterate(lambda number=number: number, n_iter=number, n_passes=float(number), **given)
        return end

    return generate()


def run(iterates, **options):
    return Run(options.pop("clock", None) or Clock(), **options)(iterates, lambda: "fallback")


FALLING = [8.0, 4.0, 2.0, 1.0, 0.5]


def test_all_iterates_are_taken_and_recorded():
    outcome = run(toy(FALLING))
    assert outcome.status is Status.FINISHED
    assert (outcome.model, outcome.n_iter, outcome.n_passes) == (5, 5, 5.0)
    assert [record.objective for record in outcome.history] == FALLING
    assert [record.n_iter for record in outcome.history] == [1, 2, 3, 4, 5]
    seconds = [record.seconds for record in outcome.history]
    assert seconds == sorted(seconds) and seconds[0] >= 0
    assert math.isnan(outcome.duality_gap) and math.isnan(outcome.history[0].validation_score)


def test_an_iterate_whose_held_out_loss_is_no_number_is_worse_than_any_other():
    outcome = run(
        toy([math.nan, 3.0, math.nan, 4.0]), held_out_loss=lambda model: [math.nan, 3.0, math.nan, 4.0][model - 1]
    )
    assert outcome.model == 2


@pytest.mark.parametrize("status", [Status.STALLED, Status.SETTLED])
def test_a_solver_may_say_why_it_ended(status):
    assert run(toy(FALLING, end=status)).status is status


@pytest.mark.parametrize(
    ("gap", "tol", "status"),
    [(1e32, 1e-3, "NOT_CONVERGED"), (0.1, 1e-3, "NOT_CONVERGED"), (5e-3, 1e-3, "STALLED"), (1e-4, 1e-12, "STALLED")],
)
def test_rounding_that_leaves_a_gap_which_bounds_nothing_is_a_failure(gap, tol, status):
    outcome = run(toy(FALLING, end=Status.STALLED, duality_gap=lambda value: gap), tol=tol)
    assert outcome.told(tol) is Status[status]
    assert outcome.told(tol).is_failure == (status == "NOT_CONVERGED")


def test_a_gap_at_tol_has_converged():
    outcome = run(toy(FALLING, duality_gap=lambda value: value), tol=2.0)
    assert (outcome.status, outcome.model, outcome.duality_gap) == (Status.CONVERGED, 3, 2.0)


def test_a_measure_at_tol_has_the_status_that_comes_with_it():
    for reached in (Status.SETTLED, Status.STATIONARY):
        outcome = run(toy(FALLING, measure=lambda value: value, reached=lambda _, r=reached: r), tol=2.0)
        assert (outcome.status, outcome.model) == (reached, 3) and math.isnan(outcome.duality_gap)
    assert run(toy([0.0, 0.0], measure=lambda value: value), tol=0.0).n_iter == 2  # 0 is for never


def test_a_measure_has_to_be_borne_out_by_iterations():
    """What a metric promises is not the Hessian's word: 596 × 18 rows without a penalty ended after one pass."""
    steady = {"measure": lambda value: 1e-3, "looks_back": lambda _: 3}
    assert run(toy([1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.7], **steady), tol=1e-2).n_iter == 7
    assert run(toy([1.0] * 8, **steady), tol=1e-2).n_iter == 4
    steady["measure"] = lambda value: 1e-6  # nothing is left
    assert run(toy([1.0] * 8, **steady), tol=1e-2).n_iter == 1


@pytest.mark.parametrize(("tol", "status"), [(0.0, Status.FINISHED), (1e-3, Status.MAX_ITER)])
def test_max_iter_is_a_failure_only_where_something_else_was_asked_for(tol, status):
    outcome = run(toy(FALLING, duality_gap=lambda value: value), tol=tol, max_iter=2)
    assert (outcome.status, outcome.model, outcome.n_iter) == (status, 2, 2)
    assert status.is_failure == (tol > 0)


def test_the_last_iteration_may_still_converge():
    assert run(toy(FALLING, duality_gap=lambda value: value), tol=4.0, max_iter=2).status is Status.CONVERGED


def test_the_best_model_is_kept():
    outcome = run(toy([3.0, 1.0, 2.0]))
    assert (outcome.model, outcome.n_iter, outcome.history[-1].objective) == (2, 3, 2.0)
    outcome = run(toy([3.0, 1.0, 2.0], rank=lambda value: -value))
    assert outcome.model == 1


def test_the_gap_is_that_of_the_model_which_is_kept():
    gaps = {3.0: 0.5, 1.0: 0.2, 2.0: 0.1}
    outcome = run(toy(gaps, duality_gap=gaps.get))
    assert (outcome.model, outcome.duality_gap, outcome.n_iter) == (2, 0.2, 3)


def test_models_are_made_only_of_what_is_better():
    made = []

    def generate():
        for number, value in enumerate([3.0, 5.0, 1.0], 1):
            yield Iterate(lambda number=number: made.append(number), value, number, number)

    run(generate())
    assert made == [1, 3]


def test_where_the_gap_is_reached_that_model_is_kept_though_rounding_may_hide_that_it_is_best():
    outcome = run(toy([1.0, 1.0 + 1e-15], duality_gap=lambda value: 0.5 if value == 1.0 else 0.0), tol=0.1)
    assert (outcome.status, outcome.model, outcome.duality_gap) == (Status.CONVERGED, 2, 0.0)


def test_of_objectives_that_differ_by_rounding_the_one_with_the_smallest_gap_is_best():
    gaps = {1.0: 1e-8, 1.0 + 4e-16: 1e-12, 1.0 + 2e-16: 1e-10, 1.5: 1e-14}
    assert run(toy(gaps, duality_gap=gaps.get)).model == 2


@pytest.mark.parametrize("where", ["solver", "loop"])
def test_held_out_rows_choose_the_model_and_end_the_run(where):
    losses = [5.0, 3.0, 4.0, 3.5, 3.0, 2.0]  # of equal ones the later
    if where == "solver":
        outcome = run(toy(losses, held_out_loss=lambda value: value, objective=lambda _: 0.0), patience=3)
    else:
        outcome = run(toy(losses), held_out_loss=lambda model: losses[model - 1], patience=3)
    assert (outcome.status, outcome.model, outcome.n_iter) == (Status.EARLY_STOPPED, 5, 5)
    assert [record.validation_score for record in outcome.history] == [-loss for loss in losses[:5]]


def test_a_callback_sees_each_record_and_may_stop():
    seen = []

    def on_iterate(record, iterate):
        assert isinstance(record, Record)
        seen.append((record.n_iter, iterate.model()))
        return record.n_iter == 2

    outcome = run(toy(FALLING), on_iterate=on_iterate)
    assert seen == [(1, 1), (2, 2)]
    assert (outcome.status, outcome.model) == (Status.STOPPED_BY_CALLBACK, 2)


@pytest.mark.parametrize("resumes", [False, True])
def test_a_callback_that_stops_a_fit_at_its_end_leaves_that_in_the_checkpoint(tmp_path, resumes):
    state = (lambda _: dict) if resumes else (lambda _: None)
    gap = {"duality_gap": lambda value: value, "state": state}
    checkpoint = Checkpoint(tmp_path / "c", {})
    outcome = run(
        toy(FALLING, **gap), tol=2.0, on_iterate=lambda record, _: record.objective == 2.0, checkpoint=checkpoint
    )
    assert outcome.status is Status.STOPPED_BY_CALLBACK
    again = run(toy([]), tol=2.0, saved=Checkpoint(tmp_path / "c", {}).read())
    assert (again.status, again.model, again.n_iter) == (Status.CONVERGED, 3, 3)


def test_time_ends_a_run_after_the_iterate_that_took_too_long():
    def generate():
        for number in range(1, 100):
            time.sleep(0.02)
            yield Iterate(lambda number=number: number, -number, number, number)

    outcome = run(generate(), clock=Clock(0.05))
    assert outcome.status is Status.MAX_TIME
    assert outcome.model == outcome.n_iter == len(outcome.history) < 99


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize(("error", "status"), [(OutOfTime, Status.MAX_TIME), (KeyboardInterrupt, Status.INTERRUPTED)])
def test_whatever_ends_a_run_from_within_leaves_a_model(number, error, status):
    outcome = run(toy([*FALLING[:number], error()]))
    assert outcome.status is status and status.is_failure
    assert outcome.model == (number or "fallback")
    assert outcome.n_iter == len(outcome.history) == number


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "model"),
    [({"held_out_loss": interrupt}, "fallback"), ({"on_iterate": interrupt}, 1)],
    ids=["held out", "callback"],
)
def test_ctrl_c_outside_of_the_solver_leaves_a_model_too(options, model):
    outcome = run(toy(FALLING), **options)
    assert (outcome.status, outcome.model) == (Status.INTERRUPTED, model)


def test_ctrl_c_while_a_model_is_made_leaves_the_one_before():
    def generate():
        yield Iterate(lambda: "first", 2.0, 1, 1.0)
        yield Iterate(interrupt, 1.0, 2, 2.0)

    outcome = run(generate())
    assert (outcome.status, outcome.model) == (Status.INTERRUPTED, "first")


def test_a_clock_raises_once_its_time_is_over():
    Clock().check()
    Clock(100.0).check()
    assert Clock().deadline == math.inf
    clock = Clock(1e-9)
    with pytest.raises(OutOfTime):
        clock.check()


def test_other_errors_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run(toy([1.0, ZeroDivisionError()]))


def test_a_solver_is_closed_whatever_ends_its_run():
    closed = []

    def generate():
        try:
            yield Iterate(lambda: 1, 1.0, 1, 1.0)
            yield Iterate(lambda: 2, 0.5, 2, 2.0)
        finally:
            closed.append(True)

    run(generate(), max_iter=1)
    assert closed == [True]


def test_details_are_looked_up_like_fields():
    record = Record(1, 2.0, 0.1, 3.0, details={"rank": 7})
    assert (record["n_iter"], record["objective"], record["rank"]) == (1, 3.0, 7)
    with pytest.raises(KeyError):
        record["certificate"]


def test_every_status_is_a_sentence():
    for status in Status:
        assert str(status).endswith(".") and len(str(status)) > 20


def test_what_is_given_for_want_of_another_gives_way_to_any():
    ranks = {1: math.inf, 2: None, 3: None}
    outcome = run(toy([0.1, 8.0, 9.0], rank=lambda value: ranks[{0.1: 1, 8.0: 2, 9.0: 3}[value]]))
    assert outcome.model == 2 and run(toy([0.1], rank=lambda value: math.inf)).model == 1
