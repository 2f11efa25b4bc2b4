"""Links by name."""

from manyclass.model.links.base import Link
from manyclass.model.links.identity import Identity
from manyclass.model.links.logistic import Logistic
from manyclass.model.links.softmax import Softmax
from manyclass.model.links.sparsemax import Sparsemax

LINKS: dict[str, Link] = {link.name: link for link in (Identity(), Softmax(), Logistic(), Sparsemax())}

__all__ = ["LINKS", "Link"]
