"""From files to a plan: which task they are for, which settings fit them, and why."""

from ._checks import check_data as check_data
from ._inferring import infer_task as infer_task
from ._plan import plan as plan
from ._recommending import recommend as recommend
