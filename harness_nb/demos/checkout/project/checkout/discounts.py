"""Discount codes, and how much they take off."""

from dataclasses import dataclass


class UnknownCode(ValueError):
    """Nobody has issued this code."""


@dataclass(frozen=True)
class Discount:
    """A percentage off the sum of the goods."""

    code: str
    percent: int

    def off(self, amount: int) -> int:
        """The cents that are taken off ``amount`` cents, half a cent rounded up."""
        return (amount * self.percent + 50) // 100


NO_DISCOUNT = Discount("", 0)

ISSUED = {discount.code: discount for discount in (Discount("WELCOME10", 10), Discount("SUMMER25", 25))}


def find_discount(code: str | None) -> Discount:
    """The discount behind a code; upper and lower case count alike."""
    if not code:
        return NO_DISCOUNT
    try:
        return ISSUED[code.strip().upper()]
    except KeyError:
        raise UnknownCode(f"there is no discount code {code!r}") from None
