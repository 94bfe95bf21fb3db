"""The sandbox as an Esplora explorer."""
