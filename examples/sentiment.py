"""Is a sentence positive or negative? Attention pooling compared with mean pooling (Yang et al. 2016).

    x[t] = embedding of word t
    mean        c = mean over t of x[t]
    attention   c = sum over t of a[t] x[t],   a = softmax over t of v . tanh(W query + U x[t] + b)
    p(polarity | words) = softmax(R c + d)

The query is learned and the same for all sentences: attention learns which words matter. Both
models have the same embeddings, sizes and batches; they differ only in c.

Data: sentence polarity (Pang and Lee 2005): a file of negative and a file of positive sentences. The last
tenth of each is held out. `foveal data get sentence_polarity` gets the files.

Run: python examples/sentiment.py [--cut 2000] [--epochs 5] [--seed 0]
"""

from dataclasses import replace

from support import parse_options, train
from support.texts import read_lines

from foveal.data import Example
from foveal.models import ClassifierSpec, SoftmaxSpec, WordEncoderSpec
from foveal.tasks import ClassificationSpec

ARCHIVE = "sentence_polarity/sentence_polarity.zip"
SHOWN = "the plot is thin and rather silly , but the acting is wonderful ."
MODEL = ClassifierSpec(encoder=WordEncoderSpec(embedding_size=64, dropout=0.5), dropout=0.5)
SPEC = ClassificationSpec(word_dropout=0.15)


def read(cut: int | None) -> tuple[list[Example], list[Example]]:
    """Read the first nine tenths of each file for training, and the last tenth for the test."""
    known, unseen = list[Example](), list[Example]()
    for name in ("neg", "pos"):
        lines = read_lines(ARCHIVE, f"sentence_polarity/rt-polarity.{name}", cut=cut)
        examples = [Example(line, name) for line in lines]
        known += examples[: len(examples) * 9 // 10]
        unseen += examples[len(examples) * 9 // 10 :]
    return known, unseen


def main() -> None:
    """Train and test both poolings, then show the attention weight of each word."""
    options = parse_options(epochs=5)
    known, unseen = read(options.cut)
    mean, attention = (
        train(replace(SPEC, model=model), known, options, learning_rate=0.01)
        for model in (replace(MODEL, pooling="mean"), replace(MODEL, pooling=SoftmaxSpec()))
    )
    for name, task in (("mean", mean), ("attention", attention)):
        accuracy = task.evaluate(unseen).metrics["accuracy"].value
        print(f"held-out accuracy of {name} pooling: {accuracy:.2f} %")
        assert accuracy > 60, "a guess is right every other time"
    trace = attention.predict(SHOWN, replace(SPEC.prediction, trace=True)).trace
    assert trace is not None, "the model attends"
    for word, weight in zip(trace.sources, trace.weights[0], strict=True):
        print(f"{weight:.3f} {word}")


if __name__ == "__main__":
    main()
