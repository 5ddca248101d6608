"""Parameters for a whole job, and metrics of your own: what a function is told, and what it tells."""

from firesteel.datastream import FilterFunction, StreamExecutionEnvironment

READINGS = [20.5, 180.0, 21.0, 999.0, 22.5, -300.0]


class Plausible(FilterFunction):
    def open(self, runtime_context):
        self.highest = float(runtime_context.get_job_parameter("highest", "100"))
        self.lowest = float(runtime_context.get_job_parameter("lowest", "-50"))  # not given below
        group = runtime_context.get_metrics_group()
        self.dropped = group.counter("dropped")
        self.kept = group.add_group("readings").distribution("kept")
        group.gauge("limit", lambda: self.highest)

    def filter(self, reading):
        if self.lowest <= reading <= self.highest:
            self.kept.update(round(reading))
            return True
        self.dropped.inc()
        return False

    def close(self):
        print(f"dropped: {self.dropped.get_count()}")


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.get_config().set_global_job_parameters({"highest": "200"})
    env.from_collection(READINGS).filter(Plausible()).print()
    env.execute("metrics")


if __name__ == "__main__":
    main()
