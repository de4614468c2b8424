"""Looking into models: views of what was attended to, explanations of answers, reports of runs, the
doctor, and alignments.

    views         plain data to drawings (SVG strings that stand alone) and pages (HTML, offline)
    explaining    one answer: what was read, what else could have been said, what is needed of it
    doctor        what is wrong with a model or a run, in plain words, and which flag helps
    aligning      which word goes with which, and how right that is
"""

from ..tasks.explaining._explanation import Explanation as Explanation
from ._report import report as report
from .aligning._forced_attention import forced_traces as forced_traces
from .aligning._symmetrization import symmetrize as symmetrize
from .aligning._word_alignment import align as align
from .doctor._findings import examine as examine, findings_section as findings_section
from .doctor._vital_signs import vital_signs as vital_signs
from .explaining._explaining import explain as explain
from .explaining._faithfulness import faithfulness as faithfulness
