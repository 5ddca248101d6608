"""Split a stream: readings go one way, those that are too cold or make no sense go two others."""

from firesteel.common import Types
from firesteel.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

LINES = ["oven 180.5", "cellar 12.0", "yard -3.5", "oven ?", "yard 1.5", "roof -8.0"]

COLD = OutputTag("cold", Types.STRING())
BROKEN = OutputTag("broken", Types.STRING())


class Parse(ProcessFunction):
    def process_element(self, line, ctx):
        sensor, text = line.split()
        try:
            temperature = float(text)
        except ValueError:
            yield BROKEN, line  # a tag and a value: to the side output of that tag
            return
        if temperature < 0:
            yield COLD, f"{sensor} is freezing"
        yield sensor, temperature  # any other pair is an ordinary record


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    readings = env.from_collection(LINES).process(Parse(), Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    readings.print("readings")
    # A side output that is emitted to has to be read somewhere, or the job fails rather than lose its records
    readings.get_side_output(COLD).print("cold")
    readings.get_side_output(BROKEN).print("broken")
    env.execute("side outputs")


if __name__ == "__main__":
    main()
