"""Formulas as MathML: browsers draw it themselves, without a network and without a script."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where the page is narrow."""
    translator.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
