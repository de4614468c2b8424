r"""Language models of plays with self-attention, next to LSTMs: characters, subwords, sizes of model and data.

    foveal fit --recipe recipes/self_attention_lm.py:characters_transformer --out runs/plays
    python -m benchmarks.lectures fit self_attention_lm --runs runs              all cases, three seeds
    python -m benchmarks.lectures score self_attention_lm --runs runs

    characters_*     tokens are characters; the Transformer and the LSTM have about 400,000 weights each
    subwords_*       tokens are 1,000 subwords; the widths are those of the characters
    size_*_32        characters, with layers of width 32
    data_*_8         characters, with layers of half the width, on the first eighth of the training set

All models read the same number of tokens, so a model with an eighth of the text reads it eight times as often. A model keeps
the weights of its best validation. The models are small: a run takes a few minutes on one core. `foveal data get
tinyshakespeare` gets the plays; `recipes/context.py` has the same split.
"""

from functools import partial
from pathlib import Path

from foveal.data import CharacterSpec, SentencePieceSpec, SourceSpec, TokenizerSpec, open_source
from foveal.models import LanguageModelSpec, TransformerLanguageModelSpec
from foveal.tasks import LanguageModelingSpec
from foveal.training import Run, TrainingSpec
from recipes.context import DATA as DATA, PLAYS as PLAYS, plays
from recipes.whole_files import write_whole

FOLDER = Path(__file__).resolve().parents[1] / ".cache/self_attention_lm"
NETWORKS = ("lstm", "transformer")
WIDTHS = {"lstm": 256, "transformer": 128}  # about 400,000 weights each
SIZES = {"lstm": (32, 64, 128), "transformer": (16, 32, 64)}  # smaller widths
PARTS = (2, 4, 8)  # the model reads one of this number of equal parts of the training set
HEAD_SIZE = 32
EPOCHS = 2.0  # of the whole training set
CASES = (
    *(f"{tokens}_{network}" for tokens in ("characters", "subwords") for network in NETWORKS),
    *(f"size_{network}_{width}" for network in NETWORKS for width in SIZES[network]),
    *(f"data_{network}_{parts}" for network in NETWORKS for parts in PARTS),
)


def recipe(case: str = "characters_transformer") -> Run:
    """Return the run of a language model."""
    kind, network, *number = case.split("_")
    width, parts = WIDTHS[network], 1
    if kind == "size":
        width = int(number[0])
    elif kind == "data":
        width, parts = width // 2, int(number[0])
    source: TokenizerSpec = CharacterSpec()
    if kind == "subwords":
        source = SentencePieceSpec(num_pieces=1_000, algorithm="bpe")
    return Run(
        task=LanguageModelingSpec(
            source=source, model=model(network, width), bptt_length=64, max_length=300
        ),
        train=part("train", parts),
        dev=part("dev"),
        test=part("test"),
        training=TrainingSpec(
            epochs=EPOCHS * parts,
            batch_size=16,
            learning_rate=4e-3 if network == "lstm" else 2e-3,
            warmup_steps=0 if network == "lstm" else 100,
            seed=1,
        ),
    )


def model(network: str, width: int) -> LanguageModelSpec | TransformerLanguageModelSpec:
    """Return a network with layers of this width."""
    if network == "lstm":
        return LanguageModelSpec(embedding_size=64, hidden_size=width, dropout=0.1)
    return TransformerLanguageModelSpec(
        model_size=width,
        num_layers=2,
        num_heads=max(1, width // HEAD_SIZE),
        context=128,
        dropout=0.1,
    )


characters_lstm, characters_transformer, subwords_lstm, subwords_transformer = (
    partial(recipe, case)
    for case in (
        "characters_lstm",
        "characters_transformer",
        "subwords_lstm",
        "subwords_transformer",
    )
)


def part(name: str, parts: int = 1) -> SourceSpec:
    """Return the lines of a part of the plays, or the first of several equal parts of these lines."""
    path = FOLDER / f"{name}_{parts}.txt"
    if not path.exists():
        lines = list(plays(name))
        write_whole(path, (f"{line}\n" for line in lines[: len(lines) // parts]))
    return open_source(path).source
