"""Is a sentence praise or blame? Attention pooling against mean pooling (Yang et al. 2016).

    x[t] = embedding of word t
    mean        c = mean over t of x[t]
    attention   c = sum over t of a[t] x[t],   a = softmax over t of v . tanh(W query + U x[t] + b)
    p(polarity | words) = softmax(R c + d)

The query is learned and the same for all sentences: attention learns which words matter. Both
models start from the same embeddings and see the same batches with the same words hidden; they
differ in c alone.

Data: sentence polarity (Pang and Lee 2005): a file of blame, a file of praise. The last tenth of either is
held out. `foveal data get sentence_polarity` gets the files.

Run: python examples/sentiment.py [--cut 2000] [--epochs 5] [--seed 0]
"""

from collections.abc import Callable

import torch
from support import Batch, Corpus, Options, fit, parse_options
from support.polarity import read_polarity
from torch import Tensor, nn

from foveal.attention import AttentionPooling, Memory, mean_pooling, softmax_attention
from foveal.distributions import Categorical
from foveal.networks import initialize_uniform

SIZE = 64  # of embeddings and of the query
SHOWN = "the plot is thin and rather silly , but the acting is wonderful ."


class Attend(nn.Module):
    """One vector for a sentence: the sum of its values, weighted by attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = AttentionPooling(softmax_attention(SIZE, SIZE), query_size=SIZE)

    def forward(self, memory: Memory) -> Tensor:
        """Memory of values (B, T, V) to vectors (B, V)."""
        return self.attention(memory).context.squeeze(-2)


class Classifier(nn.Module):
    """Embed the words, pool them into one vector, score it."""

    def __init__(self, num_words: int, pool: Callable[[Memory], Tensor]) -> None:
        super().__init__()
        self.embed = nn.Embedding(num_words, SIZE)
        initialize_uniform(self.embed)
        self.score = nn.Linear(SIZE, 2)
        self.dropout, self.pool = nn.Dropout(), pool

    def forward(self, batch: Batch) -> Categorical:
        """The distribution over the two polarities of every sentence."""
        words = self.embed(batch.features.squeeze(-1))
        pooled = self.pool(Memory(self.dropout(words), batch.mask))
        return Categorical(self.score(self.dropout(pooled)))


def train(pool: Callable[[Memory], Tensor], corpus: Corpus, options: Options) -> Classifier:
    """A classifier with this pooling; the seed makes all else the same."""
    torch.manual_seed(options.seed)
    model = Classifier(corpus.num_features, pool)

    def loss(batch: Batch) -> Tensor:
        return -model(batch).log_prob(batch.labels[:, 0])

    fit(model, loss, corpus, epochs=options.epochs, learning_rate=0.01)
    return model


def main() -> None:
    """Train and test with either pooling, then show how much attention reads of each word."""
    options, attend = parse_options(epochs=5), Attend()
    corpus = read_polarity(cut=options.cut)
    mean, attention = (train(pool, corpus, options) for pool in (mean_pooling, attend))
    for name, model in (("mean", mean), ("attention", attention)):
        right = [model(batch).argmax() == batch.labels[:, 0] for batch in corpus.batches("test")]
        accuracy = 100 * torch.cat(right).float().mean()
        print(f"held-out accuracy of {name} pooling: {accuracy:.2f} %")
        assert accuracy > 60, "a guess is right every other time"
    words = torch.tensor([corpus.vocabulary.get(word, 0) for word in SHOWN.split()])
    weights = attend.attention(Memory(attention.embed(words))).weights[0]
    for word, weight in zip(SHOWN.split(), weights, strict=True):
        print(f"{weight:.3f} {word}")


if __name__ == "__main__":
    main()
