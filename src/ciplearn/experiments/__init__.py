"""What the command line offers to try and to measure: the demo and the benchmark."""
