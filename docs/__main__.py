"""Build the documentation site: `python -m docs` writes it to docs/_build/html.

Warnings are errors, and so are links that lead nowhere within the site.
"""

import argparse
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.cmd.build import main as sphinx_build

HERE = Path(__file__).parent
BUILT = HERE / "_build"
MADE = [HERE / name for name in ("gallery", "reference/api", "reference/generated", "explanation/generated")]


class Page(HTMLParser):
    """The links of a page, and the places in it that links may lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.places.update(value for key in ("id", "name") if (value := values.get(key)))
        if tag in ("a", "img", "script", "link") and (address := values.get("href") or values.get("src")):
            self.links.append(address)


def broken_links(folder):
    """Lines `page: link` of all links within the site that lead nowhere."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html") if "_static" not in path.parts}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            is_lost = not target.exists()
            if not is_lost and parts.fragment and target in pages:
                is_lost = unquote(parts.fragment) not in pages[target].places
            if is_lost:
                broken.append(f"{path.relative_to(folder.resolve())}: {link}")
    return sorted(set(broken))


def main():
    """Build, then check the links."""
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__.splitlines()[0])
    parser.add_argument("--clean", action="store_true", help="begin anew: run all examples again")
    arguments = parser.parse_args()
    if arguments.clean:
        for folder in (BUILT, *MADE):
            shutil.rmtree(folder, ignore_errors=True)
    code = sphinx_build(["-W", "--keep-going", "-q", "-d", str(BUILT / "state"), str(HERE), str(BUILT / "html")])
    if code:
        return code
    broken = broken_links(BUILT / "html")
    for line in broken:
        sys.stderr.write(f"broken link: {line}\n")
    if not broken:
        sys.stdout.write(f"{BUILT / 'html' / 'index.html'}\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
