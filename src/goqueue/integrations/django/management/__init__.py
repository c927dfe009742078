"""Commands of manage.py, where Django looks for them."""
