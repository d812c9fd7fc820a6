"""What the made up auctions of joins.py have in common for all who make them: proportions, draws and texts.

Of every 50 events the first is a person, the next 3 are auctions and the others bids, as in Nexmark, with its hot auctions,
bidders and sellers. Everything follows from the number of the event by arithmetic that SQL, NumPy and plain Python
do alike: a draw is `(number * factor + 13) % 1000003`, with a factor of its own for each use.
"""

__all__ = [
    "CHANNELS",
    "CITIES",
    "DRAWS",
    "EVENTS_PER_HORIZON",
    "FIRST_NAMES",
    "LAST_NAMES",
    "LETTERS",
    "MODULUS",
    "STATES",
    "STATES_OF_Q3",
    "URL",
]

MODULUS = 1_000_003
#: The factor of each draw.
DRAWS = {
    "first name": 104_729,
    "last name": 611_953,
    "city": 350_377,
    "state": 479_909,
    "text": 224_737,
    "category": 746_773,
    "hot": 882_377,
    "seller": 154_858,
    "auction": 267_667,
    "bidder": 573_263,
    "price": 435_503,
    "scale": 915_851,
    "length": 318_001,
}
#: How long 100 auctions take to come; an auction is open for up to twice as long.
EVENTS_PER_HORIZON = 1_666

FIRST_NAMES = "Peter Paul Luke John Saul Vicky Kate Julie Sarah Deiter Walter".split()
LAST_NAMES = "Shultz Abrams Spencer White Bartels Walton Smith Jones Noris".split()
CITIES = (
    "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne".split(",")
)
STATES = "AZ CA ID OR WA WY".split()
STATES_OF_Q3 = ("OR", "ID", "CA")
CHANNELS = "Google Facebook Baidu Apple channel-17 channel-2345 channel-806 channel-9999".split()
URL = "https://www.nexmark.com/abcdefg/hijklmn/item.htm?query=1&channel_id=123456789"
#: Texts are pieces of this: they begin at some letter and are of some length, both from one draw below 100.
LETTERS = "".join(chr(ord("a") + place * place * 7 % 26) for place in range(600))
