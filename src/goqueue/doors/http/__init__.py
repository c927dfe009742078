"""HTTP for everybody: JSON in, JSON out, one error body, and a document of it all."""
