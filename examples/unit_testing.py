"""Orders and their payments: a job whose parts can be tested without Spark. docs/testing.md shows the tests."""

from firesteel.common import Duration, Types, WatermarkStrategy
from firesteel.datastream import KeyedCoProcessFunction, OutputTag, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

PATIENCE = 15 * 60 * 1000  # milliseconds
UNPAID = OutputTag("unpaid", Types.STRING())

ORDERS = [("order-1", 30, 0), ("order-2", 99, 60_000), ("order-3", 5, 120_000)]  # id, amount, time
PAYMENTS = [("order-1", 240_000), ("order-3", 1_500_000)]  # id, time


class MatchPayments(KeyedCoProcessFunction):
    """Orders that are paid in time; the others go to a side output when their time is up.

    Two streams are in no order to each other, so a payment may well be seen before its order.
    """

    def open(self, runtime_context):
        self.order = runtime_context.get_state(ValueStateDescriptor("order", Types.PICKLED_BYTE_ARRAY()))
        self.payment = runtime_context.get_state(ValueStateDescriptor("payment", Types.LONG()))
        self.unpaid = runtime_context.get_metrics_group().counter("unpaid")

    def process_element1(self, order, ctx):
        _, amount, time = order
        self.order.update((amount, time + PATIENCE))
        ctx.timer_service().register_event_time_timer(time + PATIENCE)
        return self.settle(ctx.timer_service(), ctx.get_current_key())

    def process_element2(self, payment, ctx):
        _, time = payment
        self.payment.update(time)
        ctx.timer_service().register_event_time_timer(time + PATIENCE)  # to forget it if there is no order
        return self.settle(ctx.timer_service(), ctx.get_current_key())

    def settle(self, timers, order_id):
        order, paid_at = self.order.value(), self.payment.value()
        if order is not None and paid_at is not None and paid_at <= order[1]:
            timers.delete_event_time_timer(order[1])
            timers.delete_event_time_timer(paid_at + PATIENCE)
            self.order.clear()
            self.payment.clear()
            yield f"{order_id}: {order[0]} paid"

    def on_timer(self, timestamp, ctx):
        if self.order.value() is not None:
            self.unpaid.inc()
            yield UNPAID, ctx.get_current_key()
        self.order.clear()
        self.payment.clear()


def match(orders, payments):
    """The stream of paid orders, from any two streams. Nothing in here knows where records come from or go to."""
    return orders.connect(payments).key_by(lambda order: order[0], lambda payment: payment[0]).process(MatchPayments())


def with_times(stream):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda record, _: record[-1]))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    paid = match(with_times(env.from_collection(ORDERS)), with_times(env.from_collection(PAYMENTS)))
    paid.print("paid")
    paid.get_side_output(UNPAID).print("unpaid")
    env.execute("payments")


if __name__ == "__main__":
    main()
