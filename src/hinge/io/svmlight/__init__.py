"""LIBSVM's data files: text that is read in compiled code."""
