"""The differential fuzzer: random transformer-like graphs, optimized and compared by oracles that share no code."""
