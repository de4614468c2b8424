"""The laws, as a suite that any distribution, ours or yours, can be put through."""

from ._laws import check_distribution as check_distribution
