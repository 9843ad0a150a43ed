"""What a customer pays: carts, discount codes, quotes."""

from checkout.cart import Cart, Item
from checkout.pricing import Quote, make_quote

__all__ = ["Cart", "Item", "Quote", "make_quote"]
