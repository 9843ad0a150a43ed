import unittest

from checkout.discounts import Discount, UnknownCode, find_discount


class DiscountTest(unittest.TestCase):
    def test_a_percentage_is_taken_off(self):
        self.assertEqual(Discount("TEN", 10).off(6000), 600)

    def test_half_a_cent_is_rounded_up(self):
        self.assertEqual(Discount("TEN", 10).off(1005), 101)

    def test_case_and_blanks_do_not_matter(self):
        self.assertEqual(find_discount(" welcome10 ").percent, 10)

    def test_no_code_is_no_discount(self):
        self.assertEqual(find_discount(None).off(6000), 0)

    def test_unknown_codes_are_refused(self):
        with self.assertRaises(UnknownCode):
            find_discount("FREEBEER")


if __name__ == "__main__":
    unittest.main()
