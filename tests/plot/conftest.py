"""Pictures are drawn without a window, and closed."""

import matplotlib as mpl
import pytest


@pytest.fixture(autouse=True)
def _no_window():
    mpl.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
