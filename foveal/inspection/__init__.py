"""Inspection of models: attention views, explanations of predictions, run reports, the doctor and alignments.

    views         render plain data as self-contained SVG drawings and offline HTML pages
    explaining    explain one prediction: attention, alternatives and the positions it depends on
    doctor        diagnose a model or a run, and name the flag that helps
    aligning      extract word alignments and score them
    dynamics      recurrent networks as dynamical systems: gradients over distance, and the flow of states

All of it works on a trained model or on the folder of a run; dynamics works on a single cell.
"""

from ..tasks.explaining._explanation import Explanation as Explanation
from ._report import report as report
from .aligning._forced_attention import forced_traces as forced_traces
from .aligning._symmetrization import symmetrize as symmetrize
from .aligning._word_alignment import align as align
from .doctor._findings import examine as examine, findings_section as findings_section
from .doctor._vital_signs import vital_signs as vital_signs
from .dynamics._activations import Activations as Activations, activations as activations
from .dynamics._gradient_profile import (
    GradientProfile as GradientProfile,
    gradient_profile as gradient_profile,
)
from .dynamics._phase_portrait import (
    PhasePortrait as PhasePortrait,
    phase_portrait as phase_portrait,
)
from .explaining._explaining import explain as explain
from .explaining._faithfulness import faithfulness as faithfulness
