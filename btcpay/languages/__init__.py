"""The languages of pages and mails: translations, and formats of numbers and times."""
