"""Do all links inside the built site lead somewhere? ``python docs/check_links.py docs/_build/html``"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where a page links to, and the places in it that can be linked to."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken(root: Path) -> list[str]:
    """``page: link`` for each link to a page, a file or a place of the site that is not there."""
    pages = {path: Page(path) for path in sorted(root.resolve().rglob("*.html")) if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                found.append(f"{path.relative_to(root.resolve())}: {link}")
    return found


if __name__ == "__main__":
    lost = broken(Path(sys.argv[1]))
    print(*lost, sep="\n", end="\n" if lost else "")
    sys.exit(f"{len(lost)} links lead nowhere." if lost else 0)
