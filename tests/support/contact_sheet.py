"""`python contact_sheet.py FOLDER FILE`: every state of the pages beside each other, on a phone.

FOLDER has the pictures of `make screenshots`; every other one is shown in the dark theme.
"""

import sys
from pathlib import Path

from PIL import Image

STATES = (
    *("branded", "countdown", "seen", "partial", "dust", "vanished"),
    *("paid", "paid_twice", "too_much", "too_much_seen", "undone", "long_ago"),
    *("overdue", "expired", "expired_of_a_link", "expired_half_paid", "expired_and_paid_late"),
    *("canceled", "link_flexible", "link_fixed", "link_wrong_amount", "link_gone"),
    *("link_too_many", "link_nothing_here"),
)
COLUMNS, WIDTH, HEIGHT, GAP = 6, 260, 560, 12
AROUND, QUALITY = "#8a929c", 70


def sheet(folder: Path) -> Image.Image:
    """Each state's upper part, six in a row. Raises FileNotFoundError for one without a picture."""
    rows = -(-len(STATES) // COLUMNS)
    size = (GAP + COLUMNS * (WIDTH + GAP), GAP + rows * (HEIGHT + GAP))
    whole = Image.new("RGB", size, AROUND)
    for number, state in enumerate(STATES):
        theme = "dark" if number % 2 else "light"
        picture = Image.open(folder / f"{state}-390-{theme}.png").convert("RGB")
        picture = picture.resize((WIDTH, picture.height * WIDTH // picture.width))
        row, column = divmod(number, COLUMNS)
        place = (GAP + column * (WIDTH + GAP), GAP + row * (HEIGHT + GAP))
        whole.paste(picture.crop((0, 0, WIDTH, min(HEIGHT, picture.height))), place)
    return whole


if __name__ == "__main__":
    sheet(Path(sys.argv[1])).save(sys.argv[2], quality=QUALITY, method=6)
