"""The environment that Ray reads when it is imported."""

import os

# Ray sends no usage statistics.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# A cluster that lasts asks for a token; for a cluster that has none, set RAY_AUTH_MODE=disabled.
if "RAY_ADDRESS" in os.environ:
    os.environ.setdefault("RAY_AUTH_MODE", "token")
