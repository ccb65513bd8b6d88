"""Linear kernels: methods on the weight vector, which need no kernel value."""
