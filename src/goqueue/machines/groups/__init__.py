"""Consumer, classic and share groups as one machine, with their committed offsets."""
