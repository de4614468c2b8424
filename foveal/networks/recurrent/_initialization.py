"""Weight initialization from the papers; each function changes a module in place.

Without these functions, weights have torch's default, uniform in +-1/sqrt(H). The forget gates of
`LSTMCell` always start open.
"""

import torch
from torch import nn

from ._cells import AbstractCell, LSTMCell


@torch.no_grad()
def initialize_uniform(module: nn.Module, bound: float = 0.1) -> None:
    """Initialize every parameter uniformly in +-bound: 0.1 in Luong et al. 2015, 0.08 in Sutskever et al. 2014.

    Args:
        module: Module whose parameters are initialized.
        bound: Largest absolute value of a parameter.

    Examples:
        >>> layer = nn.Linear(100, 100)
        >>> initialize_uniform(layer)
        >>> bool((layer.weight.abs() <= 0.1).all())
        True
    """
    for parameter in module.parameters():
        parameter.uniform_(-bound, bound)


def initialize_embeddings(module: nn.Module, bound: float = 0.1) -> None:
    """Initialize every vector of every `nn.Embedding` uniformly in +-bound.

    A word that occurs twice in the training set keeps most of its initial vector. With torch's default
    variance of 1, such vectors drown out the other words of a sentence.

    Args:
        module: Module that contains the embeddings.
        bound: Largest absolute value of a vector's entries.

    Examples:
        >>> model = nn.Sequential(nn.Embedding(100, 8), nn.Linear(8, 2))
        >>> initialize_embeddings(model)
        >>> bool((model[0].weight.abs() <= 0.1).all())
        True
    """
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            initialize_uniform(part, bound)


@torch.no_grad()
def initialize_orthogonal(module: nn.Module) -> None:
    """Initialize the recurrent matrix of every gate of every cell as orthogonal.

    An orthogonal matrix preserves the norm of its input (Saxe et al. 2014; Bahdanau et al. 2015, appendix B.1).

    Args:
        module: Module that contains the cells.

    Examples:
        >>> cell = LSTMCell(3, 4)
        >>> initialize_orthogonal(cell)
        >>> gate = cell.fused.weight_hh_l0[:4]
        >>> torch.allclose(gate @ gate.T, torch.eye(4), atol=1e-5)
        True
    """
    for cell in module.modules():
        if isinstance(cell, AbstractCell):
            for name, parameter in cell.named_parameters():
                if "weight_hh" in name:
                    for gate in parameter.split(cell.output_size):
                        nn.init.orthogonal_(gate)


def init_forget_bias(module: nn.Module, bias: float = 1.0) -> None:
    """Set the bias of every forget gate (Gers et al. 2000; Jozefowicz et al. 2015).

    Call it after functions that overwrite the bias.

    Args:
        module: Module that contains the LSTM cells.
        bias: Score of a forget gate for an input and a state of 0; larger values keep more of the memory.

    Examples:
        >>> cell = LSTMCell(3, 2)
        >>> init_forget_bias(cell, 2.0)
        >>> cell.fused.bias_ih_l0[2:4].tolist()
        [2.0, 2.0]
    """
    for cell in module.modules():
        if isinstance(cell, LSTMCell):
            cell.init_forget_bias(bias)
