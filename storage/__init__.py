"""What is kept: the models, the migrations and every query."""
