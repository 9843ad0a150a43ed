"""The quote for a cart: what is shown on the receipt and charged."""

from dataclasses import dataclass

from checkout.cart import Cart, Item
from checkout.discounts import Discount, find_discount

SHIPPING = 490
FREE_SHIPPING_FROM = 5000


@dataclass(frozen=True)
class Line:
    """One line of the receipt."""

    text: str
    amount: int


@dataclass(frozen=True)
class Quote:
    """All amounts in cents."""

    lines: tuple[Line, ...]
    goods: int
    discount: int
    shipping: int

    @property
    def total(self) -> int:
        """What the customer pays."""
        return self.goods - self.discount + self.shipping


def make_quote(cart: Cart) -> Quote:
    """Add up a cart."""
    discount = find_discount(cart.code)
    lines = tuple(make_line(item, discount) for item in cart.items)
    goods = sum(line.amount for line in lines)
    off = discount.off(goods)
    shipping = 0 if goods - off >= FREE_SHIPPING_FROM else SHIPPING
    return Quote(lines, goods, off, shipping)


def make_line(item: Item, discount: Discount) -> Line:
    """The receipt's line for one item."""
    price = item.list_price
    price -= discount.off(price)
    return Line(f"{item.quantity} x {item.name}", price)
