"""Tests of examples/unit_testing.py, as docs/testing.md shows them."""

from examples.unit_testing import PATIENCE, UNPAID, MatchPayments, match, with_times
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing import FunctionHarness, GraphHarness


def harness():
    return FunctionHarness(MatchPayments(), key_selector=(lambda order: order[0], lambda payment: payment[0]))


def test_a_payment_in_time_completes_the_order_and_leaves_nothing_behind():
    with harness() as h:
        h.process1(("order-1", 30, 1000), timestamp=1000)
        assert h.state("order", "order-1") == (30, 1000 + PATIENCE)
        h.process2(("order-1", 5000), timestamp=5000)
        assert h.output() == ["order-1: 30 paid"]
        assert h.keys("order") == h.keys("payment") == []
        assert h.timers() == []


def test_a_payment_may_be_seen_before_its_order():
    with harness() as h:
        h.process2(("order-1", 5000), timestamp=5000).process1(("order-1", 30, 1000), timestamp=1000)
        assert h.output() == ["order-1: 30 paid"]


def test_an_order_is_unpaid_when_its_time_is_up_on_both_inputs():
    with harness() as h:
        h.process1(("order-1", 30, 1000), timestamp=1000)
        h.watermark1(1000 + PATIENCE)
        assert h.side_output(UNPAID) == []  # a payment with an earlier timestamp may still come
        h.watermark2(1000 + PATIENCE)
        assert h.side_output(UNPAID) == ["order-1"]
        assert h.metrics() == {"unpaid": 1}


def test_what_was_ordered_before_a_restart_can_be_paid_after_it():
    with harness() as before:
        before.process1(("order-1", 30, 1000), timestamp=1000)
        with before.restored() as after:
            after.process2(("order-1", 5000), timestamp=5000)
            assert after.output() == ["order-1: 30 paid"]


def test_the_whole_job_gives_the_same_wherever_it_is_cut_and_when_it_fails():
    for options in ({}, {"epoch_records": 1}, {"epoch_records": 1, "fail_at": [1, 3]}, {"seed": 7}):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        orders = with_times(env.from_collection([(f"order-{n}", n, n * 1000) for n in range(20)]))
        payments = with_times(env.from_collection([(f"order-{n}", n * 1000 + 500) for n in range(0, 20, 2)]))
        paid = match(orders, payments)
        unpaid = paid.get_side_output(UNPAID)
        with GraphHarness(env, collect=[paid, unpaid], **options) as h:
            h.run()
            assert len(h.results(paid)) == len(h.results(unpaid)) == 10
