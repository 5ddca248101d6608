"""Windows in a slot.

State of a window is keyed state under (key, window): its contents, its trigger's and its function's state, and its
timers. It has the key's group, and so is checkpointed, restored and moved with the key. Two operators do the same with
it: a short loop for the common case (`aligned.py`) and the general one (`operator.py`), which follows Flink's
WindowOperator line by line.
"""
