"""Convert payments with rates that change: every subtask has all rates, in broadcast state."""

from firesteel.common import Types
from firesteel.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor

PAYMENTS = [("ann", "EUR", 10.0), ("bob", "CHF", 20.0), ("ann", "EUR", 30.0), ("cid", "XXX", 1.0)]
RATES = [("EUR", 2.0), ("CHF", 3.0)]  # XXX never comes

KNOWN_RATES = MapStateDescriptor("rates", Types.STRING(), Types.DOUBLE())
WAITING = ListStateDescriptor("waiting", Types.TUPLE([Types.STRING(), Types.STRING(), Types.DOUBLE()]))


class Convert(KeyedBroadcastProcessFunction):
    """Payments are kept by customer until the rate of their currency is known.

    Which of two streams' records comes first is not defined, so what is given out must not depend on it.
    """

    def open(self, runtime_context):
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, payment, ctx):
        customer, currency, amount = payment
        rate = ctx.get_broadcast_state(KNOWN_RATES).get(currency)
        if rate is None:
            self.waiting.add(payment)
        else:
            yield customer, amount * rate

    def process_broadcast_element(self, known, ctx):
        currency, rate = known
        ctx.get_broadcast_state(KNOWN_RATES).put(currency, rate)
        converted = []

        def let_go(customer, waiting):
            """Called for each customer of this subtask who has payments waiting."""
            payments = list(waiting.get())
            waiting.update([payment for payment in payments if payment[1] != currency])
            converted.extend((customer, amount * rate) for _, of, amount in payments if of == currency)

        ctx.apply_to_keyed_state(WAITING, let_go)
        yield from converted


def converted(payments, rates):
    by_customer = payments.key_by(lambda payment: payment[0])
    with_rates = by_customer.connect(rates.broadcast(KNOWN_RATES))
    return with_rates.process(Convert(), Types.TUPLE([Types.STRING(), Types.DOUBLE()]))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    converted(env.from_collection(PAYMENTS), env.from_collection(RATES)).print()
    env.execute("broadcast enrichment")


if __name__ == "__main__":
    main()
