"""Find the phrases of a sentence: a linear-chain CRF over a BiLSTM (Huang et al. 2015).

    p(tags | words) = LinearChain(scores of the BiLSTM, transitions)
    loss = -log p(gold tags),    answer = the most probable tags

Data: chunking of CoNLL-2000. The tagger reads the words and their spelling; it uses neither the
parts of speech of the files nor pretrained vectors. `foveal data get conll2000_chunking` gets the
files. The program prints the F1 of the shared task on its test file.

Run: python examples/crf_tagger.py [--cut 500] [--epochs 8] [--seed 0]
"""

from support import parse_options, train
from support.texts import read_lines

from foveal.data import Example, SpellingSpec
from foveal.models import TaggerSpec, TextEncoderSpec
from foveal.tasks import TaggingSpec

FOLDER = "conll2000_chunking"
BASELINE = 77.07  # of the shared task: the most frequent tag of each part of speech
SPEC = TaggingSpec(
    model=TaggerSpec(encoder=TextEncoderSpec(embedding_size=50, hidden_size=128, dropout=0.5)),
    spelling=SpellingSpec(),
    word_dropout=0.15,
)


def read(part: str, cut: int | None) -> list[Example]:
    """Read sentences and their tags; each line has a word, its part of speech and its tag."""
    blocks = "\n".join(read_lines(f"{FOLDER}/{part}.txt.gz", cut=None)).strip().split("\n\n")
    rows = [[line.split() for line in block.splitlines()] for block in blocks[:cut]]
    return [Example(" ".join(w for w, _, _ in row), " ".join(t for *_, t in row)) for row in rows]


def main() -> None:
    """Train, then tag the test sentences."""
    options = parse_options(epochs=8)
    tagger = train(SPEC, read("train", options.cut), options, learning_rate=1e-2)
    f1 = tagger.evaluate(read("test", options.cut)).value
    print(f"test chunk F1: {f1:.2f} %")
    assert f1 > BASELINE, "the tagger should beat the shared task's baseline"
    print(tagger.predict("He reckons the current account deficit will narrow .").output)


if __name__ == "__main__":
    main()
