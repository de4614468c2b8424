"""yoyodyne and JoeyNMT as peers of training: their models, their batches, their training steps.

A step is the work of their loops on a batch, without logging, callbacks and the worker process that makes
batches. Batches are precomputed, which favors the peers.

References: Gorman et al., yoyodyne 0.5, small-vocabulary sequence-to-sequence generation; Kreutzer et
al. 2019, Joey NMT: a minimalist NMT toolkit for novices.
"""

import logging
import tempfile
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import nn

from foveal.data import Example

from .seq2seq_yoyodyne import load_toolkit

NUM_BATCHES = 60  # precomputed, and used again and again
SMOOTHING = 0.1
# Defaults that JoeyNMT adds when it reads a YAML file.
SPECIAL = SimpleNamespace(
    unk_id=0,
    unk_token="<unk>",
    pad_id=1,
    pad_token="<pad>",
    bos_id=2,
    bos_token="<s>",
    eos_id=3,
    eos_token="</s>",
    sep_id=None,
    sep_token=None,
    lang_tags=[],
)


class Sizes(NamedTuple):
    """The sizes of the model (the same for the decoder and each encoder direction) and of a batch."""

    embedding: int
    hidden: int
    dropout: float
    batch: int


class Done(NamedTuple):
    """The number of examples and tokens of a step."""

    examples: int
    symbols: int  # target tokens, including the end token


Step = Callable[[], Done]


def yoyodyne(examples: Sequence[Example], sizes: Sizes) -> Step:
    """Return a training step of yoyodyne on words and their phones.

    The model is a bidirectional LSTM, soft attention, and an LSTM decoder.
    """
    data, models = load_toolkit("yoyodyne.data"), load_toolkit("yoyodyne.models")
    modules = load_toolkit("yoyodyne.models.modules")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.tsv"
        lines = (f"{example.source}\t{example.target}\n" for example in examples)
        file.write_text("".join(lines), encoding="utf-8")
        words = data.DataModule(
            model_dir=folder,
            train=str(file),
            target_sep=" ",
            batch_size=sizes.batch,
        )
        loader = torch.utils.data.DataLoader(
            words.train_dataloader().dataset,
            collate_fn=words.collator,
            batch_size=sizes.batch,
            shuffle=True,
        )
        batches = cycle(list(islice(loader, NUM_BATCHES)))
    # Its `log` needs a trainer, which does not exist here.
    kind: Any = type(
        "Training",
        (models.SoftAttentionLSTMModel,),
        {"log": lambda *_, **__: None, "validating": False, "trainer": None},
    )
    model = kind(
        source_encoder=modules.LSTMEncoder(
            dropout=sizes.dropout, embedding_size=sizes.embedding, hidden_size=sizes.hidden
        ),
        compute_accuracy=False,
        decoder_dropout=sizes.dropout,
        decoder_hidden_size=sizes.hidden,
        embedding_size=sizes.embedding,
        label_smoothing=SMOOTHING,
        target_vocab_size=words.target_vocab_size,
        vocab_size=words.vocab_size,
    ).train()
    (optimizer,), _ = model.configure_optimizers()

    def step() -> Done:
        batch = next(batches)
        optimizer.zero_grad()
        model.training_step(batch, 0).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return Done(len(batch), int((~batch.target.mask).sum()))

    return step


def joeynmt(examples: Sequence[Example], sizes: Sizes) -> Step:
    """Return a training step of JoeyNMT on translation from characters to words.

    The model is a bidirectional LSTM, Bahdanau attention, and an LSTM decoder with input feeding.
    """
    data, models = load_toolkit("joeynmt.data"), load_toolkit("joeynmt.model")
    logging.disable(logging.INFO)  # it logs every file and layer
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, texts in (
            ("src", ["".join(example.text.split()) for example in examples]),
            ("trg", [example.target or "" for example in examples]),
        ):
            (folder / f"train.{side}").write_text("\n".join(texts) + "\n", encoding="utf-8")
        sides = {
            side: {"lang": side, "level": level, "voc_min_freq": 2, "max_length": 1000}
            for side, level in (("src", "char"), ("trg", "word"))
        }
        settings = {"train": str(folder / "train"), "special_symbols": SPECIAL, **sides}
        source, target, train, _, _ = data.load_data(settings, datasets=["train"])
    embeddings = {"embedding_dim": sizes.embedding, "dropout": sizes.dropout}
    side = {
        "type": "recurrent",
        "rnn_type": "lstm",
        "num_layers": 1,
        "embeddings": embeddings,
        "hidden_size": sizes.hidden,
        "dropout": sizes.dropout,
    }
    settings = {
        "encoder": {**side, "bidirectional": True},
        "decoder": {
            **side,
            "attention": "bahdanau",
            "input_feeding": True,
            "init_hidden": "bridge",
        },
    }
    model = models.build_model(settings, src_vocab=source, trg_vocab=target).train()
    model.loss_function = ("crossentropy", SMOOTHING)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = train.make_iter(
        sizes.batch,
        shuffle=True,
        pad_index=source.pad_index,
        eos_index=source.eos_index,
    )
    batches = cycle(list(islice(loader, NUM_BATCHES)))

    def step() -> Done:
        batch = next(batches)
        batch.sort_by_src_length()
        loss, *_ = model(return_type="loss", **vars(batch))
        batch.normalize(loss, "batch").backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return Done(int(batch.nseqs), int(batch.ntokens))

    return step
