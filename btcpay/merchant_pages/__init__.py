"""The merchant's pages: the shop for who has no shell, behind a link that logs in once."""
