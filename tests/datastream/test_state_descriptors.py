import pickle

import pytest

from firesteel.common import Duration, Time, Types
from firesteel.datastream.functions import AggregateFunction, ReduceFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Longer(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2, key=len)


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class DictState(MapState):
    def __init__(self):
        self.entries = {}

    def get(self, key):
        return self.entries.get(key)

    def put(self, key, value):
        self.entries[key] = value

    def put_all(self, dict_value):
        self.entries.update(dict_value)

    def remove(self, key):
        self.entries.pop(key, None)

    def contains(self, key):
        return key in self.entries

    def items(self):
        return self.entries.items()

    def keys(self):
        return self.entries.keys()

    def values(self):
        return self.entries.values()

    def is_empty(self):
        return not self.entries

    def clear(self):
        self.entries.clear()


@pytest.mark.parametrize(
    ("descriptor", "kind", "type_info"),
    [
        (ValueStateDescriptor("s", Types.INT()), "value", Types.INT()),
        (ValueStateDescriptor("s"), "value", None),
        (ListStateDescriptor("s", Types.INT()), "list", Types.LIST(Types.INT())),
        (ListStateDescriptor("s"), "list", Types.LIST(Types.PICKLED_BYTE_ARRAY())),
        (MapStateDescriptor("s", Types.STRING(), Types.INT()), "map", Types.MAP(Types.STRING(), Types.INT())),
        (ReducingStateDescriptor("s", max, Types.INT()), "reducing", Types.INT()),
        (AggregatingStateDescriptor("s", Mean(), Types.INT()), "aggregating", Types.INT()),
    ],
)
def test_descriptors_tell_kind_name_and_type(descriptor, kind, type_info):
    assert (descriptor.kind, descriptor.name, descriptor.get_name()) == (kind, "s", "s")
    assert descriptor.type_info == type_info
    assert descriptor.ttl_config is None


def test_a_reduce_function_is_found_whichever_way_it_was_given():
    by_class, by_function = ReducingStateDescriptor("s", Longer()), ReducingStateDescriptor("s", max)
    assert by_class.reduce_function("a", "bb") == by_class.get_reduce_function().reduce("a", "bb") == "bb"
    assert by_function.reduce_function is max
    assert by_function.get_reduce_function().reduce(1, 2) == 2


def test_an_aggregate_function_is_kept():
    mean = Mean()
    descriptor = AggregatingStateDescriptor("s", mean)
    assert descriptor.agg_function is descriptor.get_agg_function() is mean


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ValueStateDescriptor(""), "non-empty string"),
        (lambda: ValueStateDescriptor("s", int), "type of state 's' must be a TypeInformation"),
        (lambda: MapStateDescriptor("s", Types.INT, Types.INT()), "type of state 's'"),
        (lambda: ReducingStateDescriptor("s", 3), "'s' takes a ReduceFunction or a function"),
        (lambda: AggregatingStateDescriptor("s", max), "'s' takes an AggregateFunction"),
        (lambda: ValueStateDescriptor("s").enable_time_to_live(5), "must be a StateTtlConfig"),
        (lambda: StateTtlConfig.new_builder(5), "must be a Time"),
    ],
)
def test_wrong_arguments_are_refused(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def test_map_states_can_be_used_like_dicts():
    state = DictState()
    state["a"] = 1
    state.put_all({"b": 2})
    del state["missing"]
    assert ("a" in state, "c" in state, state["a"], state["c"]) == (True, False, 1, None)
    assert (list(state), dict(state.items())) == (["a", "b"], {"a": 1, "b": 2})


def test_list_states_can_be_iterated():
    class Fixed(ListState):
        add = add_all = update = clear = None

        def get(self):
            return [1, 2]

    assert list(Fixed()) == [1, 2]


def test_time_to_live_has_flinks_defaults():
    config = StateTtlConfig.new_builder(Time.seconds(5)).build()
    assert config.get_ttl() == Time.seconds(5)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background() and not cleanup.in_full_snapshot()
    incremental = cleanup.get_incremental_cleanup_strategy()
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, False)
    compaction = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
    assert compaction.get_query_time_after_num_entries() == 1000
    assert compaction.get_periodic_compaction_time() == Duration.of_days(30)


def test_every_setting_of_time_to_live_arrives():
    config = (
        StateTtlConfig.new_builder(Time.seconds(1))
        .set_ttl(Duration.of_minutes(2))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(7, True)
        .cleanup_in_rocksdb_compact_filter(50, Duration.of_hours(1))
        .disable_cleanup_in_background()
        .build()
    )
    assert config.get_ttl() == Time.minutes(2)
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    cleanup = config.get_cleanup_strategies()
    assert cleanup.in_full_snapshot() and not cleanup.is_cleanup_in_background()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 7
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 50


def test_without_background_cleanup_only_chosen_strategies_are_on():
    cleanup = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build()
    assert cleanup.get_cleanup_strategies().get_incremental_cleanup_strategy() is None
    assert cleanup.get_cleanup_strategies().get_rocksdb_compact_filter_cleanup_strategy() is None


def test_a_disabled_time_to_live_is_none():
    builder = StateTtlConfig.new_builder(Time.seconds(1))
    descriptor = ValueStateDescriptor("s")
    descriptor.enable_time_to_live(builder.set_update_type(StateTtlConfig.UpdateType.Disabled).build())
    assert descriptor.ttl_config is None
    descriptor.enable_time_to_live(builder.update_ttl_on_create_and_write().build())
    assert descriptor.ttl_config.get_ttl() == Time.seconds(1)


def test_a_time_to_live_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1 ms"):
        StateTtlConfig.new_builder(Time.milliseconds(0))


def test_descriptors_with_time_to_live_can_be_pickled():
    descriptor = MapStateDescriptor("s", Types.INT(), Types.INT())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).cleanup_full_snapshot().build())
    copy = pickle.loads(pickle.dumps(descriptor))
    assert copy.type_info == descriptor.type_info
    assert copy.ttl_config.get_ttl() == Time.hours(1)
    assert copy.ttl_config.get_cleanup_strategies().in_full_snapshot()
