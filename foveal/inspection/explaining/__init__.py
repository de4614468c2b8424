"""One answer explained: what was read, what else could have been said, and what is needed of it."""

from ._erasure import erased as erased
from ._explaining import explain as explain, picture_seen as picture_seen
from ._explanation import Explanation as Explanation
from ._explanation_page import explanation_page as explanation_page
from ._faithfulness import Faithfulness as Faithfulness, faithfulness as faithfulness
