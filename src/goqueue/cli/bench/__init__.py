"""`goqueue bench`: a real client's load on a real broker, each figure beside the raw operation of the same run."""
