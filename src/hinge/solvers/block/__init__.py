"""Working sets of many variables, and the samples that can be left out of them."""
