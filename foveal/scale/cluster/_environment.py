"""The environment that Ray reads when it is imported."""

import os

# Ray sends no usage statistics.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# A long-lived cluster requires a token; for a cluster without one, set RAY_AUTH_MODE=disabled.
if "RAY_ADDRESS" in os.environ:
    os.environ.setdefault("RAY_AUTH_MODE", "token")
