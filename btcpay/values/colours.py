"""Colours `#rrggbb`: their luminance and contrast (WCAG 2.2). Pure."""

# The colour of buttons if a merchant has set none, as in static/pages.css.
USUAL_ACCENT = "#2563eb"


def luminance(colour: str) -> float:
    """Returns the relative luminance of a colour `#rrggbb`, from 0 to 1 (WCAG 2.2)."""
    red = _linear(int(colour[1:3], 16) / 255)
    green = _linear(int(colour[3:5], 16) / 255)
    blue = _linear(int(colour[5:7], 16) / 255)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    if share <= 0.04045:
        return share / 12.92
    curved: float = ((share + 0.055) / 1.055) ** 2.4
    return curved


def contrast(first: str, second: str) -> float:
    """Returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def button_text(accent: str) -> str:
    """Returns the text colour for a button of the colour `accent`: white or black.

    It is the one with more contrast.
    """
    return max("#ffffff", "#000000", key=lambda text: contrast(text, accent))
