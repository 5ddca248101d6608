"""Count words as they come: every word emits its new count, so there is one update per word and not one per line."""

from firesteel.datastream import StreamExecutionEnvironment

LINES = ["hadoop hadoop", "hadoop", "hive hadoop"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    words = env.from_collection(LINES).flat_map(lambda line: line.split())
    by_word = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    by_word.reduce(lambda so_far, new: (so_far[0], so_far[1] + new[1])).print()
    env.execute("word count")


if __name__ == "__main__":
    main()
