"""The experiments of the lectures: structured attention beside simple, with several seeds."""
