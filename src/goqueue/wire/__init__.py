"""Sans-IO codecs: bytes to messages and back, for doors and clients alike. Pure."""
