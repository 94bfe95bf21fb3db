"""The languages of pages and mails: their catalogs, numbers and times."""
