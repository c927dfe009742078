"""One file per family of requests. A handler translates, calls the broker, and answers now or later."""
