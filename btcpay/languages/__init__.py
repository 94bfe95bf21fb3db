"""The languages of pages and mails: their catalogs, and how each writes numbers and times."""
