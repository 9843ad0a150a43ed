"""Items and carts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """Some pieces of one article. ``unit_price`` is the list price in cents."""

    name: str
    unit_price: int
    quantity: int = 1

    @property
    def list_price(self) -> int:
        """Cents for all pieces, before any discount."""
        return self.unit_price * self.quantity


@dataclass(frozen=True)
class Cart:
    """What a customer is about to buy, and the discount code that was typed in, if any."""

    items: tuple[Item, ...]
    code: str | None = None
