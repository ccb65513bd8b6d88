"""The toy in a notebook: the same page as a widget, whose questions go to the kernel instead of a server."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from hinge.toy.answers import answer
from hinge.toy.scene import SceneError

# How a widget mounts the page: questions are messages with a number, and so are their answers.
_RENDER = """
export default {
  render({ model, el }) {
    let last = 0;
    const waiting = new Map();
    model.on("msg:custom", (message, buffers) => {
      const { resolve, reject } = waiting.get(message.number) || {};
      if (!resolve) return;
      waiting.delete(message.number);
      if (message.error) reject(new Error(message.error));
      else resolve(buffers[0].buffer.slice(buffers[0].byteOffset, buffers[0].byteOffset + buffers[0].byteLength));
    });
    const ask = (question, body) => new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      model.send({ number: last, question, body });
    });
    mount(el, ask, {
      read: () => model.get("state"),
      write: (text) => { model.set("state", text); model.save_changes(); },
      listen: (changed) => model.on("change:state", changed),
    });
  },
};
"""


def _page(name: str) -> str:
    return files("hinge.toy").joinpath("page", name).read_text(encoding="utf-8")


def _module() -> str:
    """The page's scripts as one module: notebooks load a widget from a single text."""
    scripts = _page("draw.js") + re.sub(r"(?m)^import .*$", "", _page("toy.js"))
    return re.sub(r"(?m)^export ", "", scripts) + _RENDER


def toy_class() -> type[Any]:
    """Return the class of the widget.

    Raises
    ------
    ImportError
        anywidget is not installed.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError("the toy in a notebook needs anywidget: pip install 'hinge-svm[notebook]'") from None

    class Toy(anywidget.AnyWidget):  # type: ignore[misc]
        """The toy in a notebook.

        Parameters
        ----------
        state : str
            What it begins with: a link that somebody copied from a toy, or the part behind ``#``. Reading it gives
            what is drawn now.

        Examples
        --------
        >>> from hinge.toy import Toy
        >>> Toy()                 # doctest: +SKIP
        """

        _esm = _module()
        _css = _page("toy.css")
        state = traitlets.Unicode("").tag(sync=True)

        def __init__(self, state: str = "", **given: Any) -> None:
            super().__init__(state=state.rpartition("#")[2], **given)
            self.on_msg(self._answer)

        def _answer(self, _: Any, content: Any, __: Any) -> None:
            number, question, body = (content.get(name) for name in ("number", "question", "body"))
            try:
                packed = answer(question, body).packed()
            except SceneError as error:
                self.send({"number": number, "error": str(error)})
            else:
                self.send({"number": number}, [packed])

    return Toy
