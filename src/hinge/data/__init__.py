"""How samples are stored, checked and compared."""
