"""The performance instrument: `Benchmarks/run` starts it, one module per subject."""
