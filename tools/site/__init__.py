"""The documentation as a site: pages of docs/, and reference pages that are made from the API itself."""
