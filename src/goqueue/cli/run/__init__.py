"""What commands do. Each module is imported when one of its commands runs, so that help is instant."""
