"""Users, API keys and rules: managed by admins, and checked when somebody comes in."""
