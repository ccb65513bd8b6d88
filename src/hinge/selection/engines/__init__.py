"""Where the units of a search run: threads here, joblib's workers, a Dask cluster."""
