"""The hosted pages: what they may show, in which language, behind which headers."""
