"""PyFlink's DataStream API: what users import."""

from firesteel.datastream.checkpoint_config import CheckpointConfig, CheckpointingMode
from firesteel.datastream.collecting import CloseableIterator
from firesteel.datastream.data_stream import DataStream, DataStreamSink, KeyedStream
from firesteel.datastream.environment import StreamExecutionEnvironment
from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from firesteel.datastream.state import ValueState, ValueStateDescriptor

__all__ = [
    "CheckpointConfig",
    "CheckpointingMode",
    "CloseableIterator",
    "DataStream",
    "DataStreamSink",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeySelector",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "ProcessFunction",
    "ReduceFunction",
    "RuntimeContext",
    "StreamExecutionEnvironment",
    "ValueState",
    "ValueStateDescriptor",
]
