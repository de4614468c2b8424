"""Export: a trained model as an ONNX graph and plain files, which run without torch.

`export_bundle` writes the folder, and `foveal.runtime`, also published as `foveal-runtime`, runs it. The graph is built
from the spec and the weights of a bundle, part by part; nothing is traced. A part of your own gets a graph with
`attention_graph.register` and the like.
"""

from ._answerer import ExportedAnswerer as ExportedAnswerer
from ._folder import (
    Exported as Exported,
    ExportOptions as ExportOptions,
    export_bundle as export_bundle,
)
from ._images import Images as Images, emit_image_encoder as emit_image_encoder
from ._labels import (
    Classified as Classified,
    emit_classifier as emit_classifier,
    emit_tagger as emit_tagger,
)
from ._models import task_graph as task_graph
from ._page import write_page as write_page
from ._settings import task_settings as task_settings
from ._step_graphs import StepGraphs as StepGraphs, step_graphs as step_graphs
from .graphs._attentions import AttentionGraph as AttentionGraph, attention_graph as attention_graph
from .graphs._decoders import decoder_graph as decoder_graph
from .graphs._decoding_steps import (
    DecoderGraph as DecoderGraph,
    Started as Started,
    Stepped as Stepped,
)
from .graphs._encoders import emit_encoder as emit_encoder
from .graphs._graph import Graph as Graph, Value as Value, op as op
from .graphs._memory import MemoryGraph as MemoryGraph, Source as Source
from .graphs._scorers import ScorerGraph as ScorerGraph, scorer_graph as scorer_graph
from .graphs._weights import Weights as Weights
