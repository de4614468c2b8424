"""Test suites that check a distribution, attention, network or model, built in or custom, against its laws."""

from ._attention_laws import (
    check_attention as check_attention,
    check_reader as check_reader,
    check_scorer as check_scorer,
)
from ._laws import check_distribution as check_distribution
from ._model_laws import check_model as check_model
from ._network_laws import (
    check_cell as check_cell,
    check_decoder as check_decoder,
    check_encoder as check_encoder,
)
