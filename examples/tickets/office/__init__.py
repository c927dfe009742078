"""The app: orders, the tasks that they cause, and two pages."""
