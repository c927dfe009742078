"""What the HTTP door takes and gives, as types: its handlers, its OpenAPI document and our own client share them."""
