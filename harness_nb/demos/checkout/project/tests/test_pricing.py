import unittest

from checkout import Cart, Item, make_quote

MUGS = Item("mug", 1250, 2)
TEAPOT = Item("teapot", 3500)


class QuoteTest(unittest.TestCase):
    def test_without_a_code_list_prices_are_added_up(self):
        self.assertEqual(make_quote(Cart((MUGS, TEAPOT))).total, 6000)

    def test_small_orders_pay_shipping(self):
        self.assertEqual(make_quote(Cart((MUGS,))).total, 2500 + 490)

    def test_a_code_is_taken_off_once(self):
        self.assertEqual(make_quote(Cart((MUGS, TEAPOT), "WELCOME10")).total, 5400)

    def test_a_code_does_not_touch_shipping(self):
        self.assertEqual(make_quote(Cart((MUGS,), "SUMMER25")).total, 2500 - 625 + 490)

    def test_the_receipt_lists_goods_at_their_list_price(self):
        quote = make_quote(Cart((MUGS, TEAPOT), "SUMMER25"))
        self.assertEqual([line.amount for line in quote.lines], [2500, 3500])
        self.assertEqual(quote.discount, 1500)

    def test_unknown_codes_are_refused(self):
        with self.assertRaises(ValueError):
            make_quote(Cart((MUGS,), "FREEBEER"))


if __name__ == "__main__":
    unittest.main()
