"""The experiments of the lectures: structured attention compared with softmax, with several seeds."""
