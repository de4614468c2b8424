"""Planning: infer the task and its settings from files, with a reason for each choice."""

from ._checks import check_data as check_data
from ._inferring import infer_task as infer_task
from ._plan import plan as plan
from ._recommending import recommend as recommend
