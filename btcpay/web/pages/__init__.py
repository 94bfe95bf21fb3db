"""The code that all HTML pages share: rendering, assets, languages, forms and lists."""
